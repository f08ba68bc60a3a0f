import { isInForce, joinSection, PAT_PID, programOf, programsOf, type Sections, type TsProgram } from './tables.ts';
import type { PacketsEnd, TsPacket } from './ts-packets.ts';

/** No packet has it: there is no sound that can be taken. */
const NO_PID = -1;
/** What a walk met, and where it stands. */
export type TsFaults = PacketsEnd & {
  /** PID of the sound, where it has moved. */
  pid?: number;
  /** Parts of the program have sound in another coding alone. */
  hasOther?: boolean;
  /** How often the clock of 33 bits has started again, and its last time. */
  wraps?: number;
  lastSeconds?: number;
};

interface Wanted {
  readonly pid: number;
  readonly framing: string;
  readonly channels: number;
}

/**
 * Reads the tables of a program again wherever they change. Streams are concatenated, or switched, and from
 * there on the sound may have another PID, and the old one may be the pictures'.
 */
export class ProgramWatch {
  /** Tables that may be the program's, while the table of all does not list it any more. */
  #candidates: readonly number[] = [];
  readonly #sections: Sections = new Map();

  constructor(
    private program: Pick<TsProgram, 'number' | 'tablePid'>,
    private readonly wanted: Wanted,
    private readonly found: TsFaults,
  ) {}

  /** The PID of the sound. */
  get pid(): number {
    return this.found.pid ?? this.wanted.pid;
  }

  /** Every packet, in order. @returns the PID of the sound from here on */
  pass({ pid, isStart, payload }: TsPacket): number {
    if (pid !== PAT_PID && pid !== this.program.tablePid && !this.#candidates.includes(pid)) return this.pid;
    const section = joinSection(this.#sections, pid, isStart, payload);
    if (!section || !isInForce(section)) return this.pid;
    if (pid === PAT_PID) this.#passPrograms(section);
    else this.#passStreams(programOf(section, pid));
    return this.pid;
  }

  #passPrograms(section: Uint8Array): void {
    const listed = programsOf(section);
    const { number, tablePid } = this.program;
    const isListed = listed.some((other) => other.number === number && other.tablePid === tablePid);
    this.#candidates = isListed ? [] : listed.map((other) => other.tablePid);
  }

  #passStreams(program: TsProgram): void {
    const { number, tablePid, streams } = program;
    const isCandidate = this.#candidates.includes(tablePid);
    if (!isCandidate && (number !== this.program.number || tablePid !== this.program.tablePid)) return;
    const sound = streams.filter(({ framing, foreign }) => framing || foreign);
    const fitting = sound.filter(
      ({ framing, channels = 0 }) => framing === this.wanted.framing && channels === this.wanted.channels,
    );
    if (isCandidate && this.#candidates.length > 1 && fitting.length === 0) return;
    if (isCandidate) {
      this.program = program;
      this.#candidates = [];
    }
    if (fitting.some(({ pid }) => pid === this.pid)) return;
    this.found.hasOther ||= fitting.length === 0 && sound.length > 0;
    // A table that does not name the PID at all takes nothing away: what comes with it is still the sound.
    const isTaken = streams.some(({ pid }) => pid === this.pid);
    this.found.pid = fitting[0]?.pid ?? (isTaken ? NO_PID : this.pid);
  }
}
