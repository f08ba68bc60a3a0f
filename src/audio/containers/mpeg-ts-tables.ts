import type { BlockReader } from '../block-reader.ts';
import { ascii, hasAscii, u16be } from '../bytes.ts';
import { MAX_OPUS_CHANNELS } from '../codec-config.ts';
import { crc32MsbFirst } from '../crc.ts';
import { concatenated } from '../memory.ts';

/** Layout of a transport stream in a file: packets of 188 bytes, or with a time or checksums added. */
interface Layout {
  /** Bytes before the first sync byte. */
  readonly firstByte: number;
  readonly stride: number;
}

export const PACKET_BYTES = 188;
const STRIDES = [PACKET_BYTES, 192, 204];
const SYNC = 0x47;
/** Number of sync bytes that must follow at the same distance. */
const MIN_SYNCS = 5;
const LOST_SYNCS = 3;

/** Recognises a transport stream by its sync bytes; it may begin inside a packet. */
export function findLayout(head: Uint8Array): Layout | undefined {
  for (const stride of STRIDES) {
    for (let first = 0; first < stride; first++) {
      if (head[first] === SYNC && hasSyncs(head, first, stride, MIN_SYNCS)) return { firstByte: first, stride };
    }
  }
  return undefined;
}

function hasSyncs(bytes: Uint8Array, first: number, stride: number, count: number): boolean {
  for (let i = 0; i < count; i++) if (bytes[first + i * stride] !== SYNC) return false;
  return true;
}

/** One packet (ISO/IEC 13818-1 §2.4.3). */
interface TsPacket {
  readonly position: number;
  readonly pid: number;
  /** Whether a section or a PES packet begins here. */
  readonly isStart: boolean;
  readonly isScrambled: boolean;
  readonly counter: number;
  /** A view, valid until the next use of the reader. */
  readonly payload: Uint8Array;
}

/** Result of a walk over the packets. */
type PacketsEnd = {
  /** Whether it ended inside a packet. */
  isCut?: boolean;
};

/** The packets with a payload from `from`. After a missing sync byte it continues at the next three in a row. */
export async function* tsPackets(
  reader: BlockReader,
  stride: number,
  from: number,
  end: PacketsEnd = {},
): AsyncGenerator<readonly TsPacket[]> {
  end.isCut = false;
  for (let position = from; position < reader.sizeBytes; ) {
    if (position + PACKET_BYTES > reader.sizeBytes) {
      end.isCut = (await reader.peek(position, 1))[0] === SYNC;
      return;
    }
    const view = await reader.peek(position, stride * LOST_SYNCS);
    const packets: TsPacket[] = [];
    let at = 0;
    while (at + PACKET_BYTES <= view.length && view[at] === SYNC && packets.length < MAX_BATCH) {
      const packet = parsePacket(view.subarray(at, at + PACKET_BYTES), position + at);
      if (packet) packets.push(packet);
      at += stride;
    }
    if (packets.length > 0) yield packets;
    if (at === 0) {
      at = 1;
      while (at < view.length && !(view[at] === SYNC && hasSyncs(view, at, stride, LOST_SYNCS))) at++;
      // The next three sync bytes may begin in the last packets of the view.
      at = Math.min(at, Math.max(1, view.length - stride * LOST_SYNCS + 1));
    }
    position += at;
  }
}

/** Packets that share one view. */
const MAX_BATCH = 1024;

function parsePacket(bytes: Uint8Array, position: number): TsPacket | undefined {
  const hasPayload = (bytes[3] & 0x10) !== 0;
  const start = bytes[3] & 0x20 ? 5 + bytes[4] : 4;
  if (!hasPayload || start >= PACKET_BYTES || bytes[1] & 0x80) return undefined;
  return {
    position,
    pid: u16be(bytes, 1) & 0x1fff,
    isStart: (bytes[1] & 0x40) !== 0,
    isScrambled: bytes[3] >> 6 !== 0,
    counter: bytes[3] & 15,
    payload: bytes.subarray(start),
  };
}

/** Framing of the audio of one stream. */
export type Framing = 'adts' | 'latm' | 'mpeg' | 'ac3' | 'eac3' | 'opus';

interface TsStream {
  readonly pid: number;
  /** Undefined for video, subtitles and others. */
  readonly framing?: Framing;
  readonly isVideo?: boolean;
  /** Channels of Opus. */
  readonly channels?: number;
  /** Name of an audio coding that is not supported. */
  readonly unsupported?: string;
}

/** One program of the stream, from its table. */
export interface TsProgram {
  readonly number: number;
  readonly tablePid: number;
  readonly streams: readonly TsStream[];
}

/** Bytes that are searched for the tables, which are repeated several times a second, and for audio in later tables. */
const SEARCH_BYTES = 8 << 20;
const MAX_SECTION_BYTES = 1024;
const PAT_PID = 0;

/**
 * The first program with audio, otherwise the first one; undefined without tables. A stream may begin with video alone.
 */
export async function readProgram(reader: BlockReader, stride: number, from: number): Promise<TsProgram | undefined> {
  const sections: Sections = new Map();
  const programs = new Map<number, TsProgram>();
  let pids: readonly number[] = [];
  const found = () => pids.map((pid) => programs.get(pid)).filter((program) => program !== undefined);
  const withAudio = () => found().find(({ streams }) => streams.some((stream) => stream.framing));
  for await (const packets of tsPackets(reader, stride, from)) {
    for (const { pid, isStart, payload } of packets) {
      if (pid !== PAT_PID && !pids.includes(pid)) continue;
      const section = joinSection(sections, pid, isStart, payload);
      if (!section) continue;
      if (pid === PAT_PID) {
        const listed = [...new Set(programsOf(section).map(({ tablePid }) => tablePid))];
        if (listed.length > 0) pids = listed;
      } else programs.set(pid, programOf(section, pid));
      const best = pids.length > 0 && pids.every((tablePid) => programs.has(tablePid)) ? withAudio() : undefined;
      if (best) return best;
    }
    if ((packets.at(-1)?.position ?? 0) > from + SEARCH_BYTES) break;
  }
  return withAudio() ?? found()[0];
}

/** Incomplete sections by PID. */
type Sections = Map<number, Uint8Array>;

/** Assembles a section. @returns the section when it is complete */
function joinSection(sections: Sections, pid: number, isStart: boolean, payload: Uint8Array): Uint8Array | undefined {
  const before = isStart ? undefined : sections.get(pid);
  if (!isStart && !before) return undefined;
  const part = isStart ? payload.subarray(1 + payload[0]) : payload;
  const joined = concatenated(Uint8Array, before ? [before, part] : [part]);
  if (joined.length < 3 || joined.length > MAX_SECTION_BYTES + 188) return undefined;
  const length = 3 + (u16be(joined, 1) & 0xfff);
  sections.set(pid, joined);
  if (joined.length < length) return undefined;
  sections.delete(pid);
  return joined.subarray(0, length);
}

const PAT_TABLE = 0;
const PMT_TABLE = 2;
const CRC_BYTES = 4;

/** Number and table of each program, from the program association table. */
function programsOf(section: Uint8Array): Pick<TsProgram, 'number' | 'tablePid'>[] {
  const programs: Pick<TsProgram, 'number' | 'tablePid'>[] = [];
  if (section[0] !== PAT_TABLE) return programs;
  for (let at = 8; at + 4 <= section.length - CRC_BYTES; at += 4) {
    const number = u16be(section, at);
    if (number !== 0) programs.push({ number, tablePid: u16be(section, at + 2) & 0x1fff });
  }
  return programs;
}

/** Whether a section applies now, is its complete table, and has a right checksum. */
const isInForce = (section: Uint8Array): boolean =>
  section.length >= 12 &&
  (section[5] & 1) === 1 &&
  section[6] === 0 &&
  section[7] === 0 &&
  crc32MsbFirst(section, -1) === 0;

const programOf = (section: Uint8Array, tablePid: number): TsProgram => ({
  number: section.length >= 12 ? u16be(section, 3) : 0,
  tablePid,
  streams: streamsOf(section),
});

function streamsOf(section: Uint8Array): TsStream[] {
  const streams: TsStream[] = [];
  if (section[0] !== PMT_TABLE || section.length < 12) return streams;
  for (let at = 12 + (u16be(section, 10) & 0xfff); at + 5 <= section.length - CRC_BYTES; ) {
    const length = u16be(section, at + 3) & 0xfff;
    const descriptors = section.subarray(at + 5, at + 5 + length);
    streams.push({ pid: u16be(section, at + 1) & 0x1fff, ...codingOf(section[at], descriptors) });
    at += 5 + length;
  }
  return streams;
}

type Coding = Pick<TsStream, 'framing' | 'channels' | 'unsupported' | 'isVideo'>;

/** Audio codings by stream type (ISO/IEC 13818-1 table 2-34; ATSC A/52 annex A; ETSI TS 101 154). */
const TYPES: Readonly<Record<number, Coding>> = {
  3: { framing: 'mpeg' },
  4: { framing: 'mpeg' },
  15: { framing: 'adts' },
  17: { framing: 'latm' },
  128: { unsupported: 'uncompressed samples (LPCM)' },
  129: { framing: 'ac3' },
  130: { unsupported: 'DTS' },
  131: { unsupported: 'Dolby TrueHD' },
  132: { framing: 'eac3' },
  133: { unsupported: 'DTS-HD' },
  134: { unsupported: 'DTS-HD' },
  135: { framing: 'eac3' },
};
/** Video, from MPEG-1 to VVC, and of other bodies (AVS, Dirac, VC-1). */
const VIDEO_TYPES = new Set([1, 2, 16, 27, 30, 31, 32, 36, 51, 66, 209, 210, 212, 234]);
const PRIVATE_DATA = 6;

const REGISTERED: Readonly<Record<string, Coding>> = {
  'AC-3': { framing: 'ac3' },
  EAC3: { framing: 'eac3' },
  DTS1: { unsupported: 'DTS' },
  DTS2: { unsupported: 'DTS' },
  DTS3: { unsupported: 'DTS' },
  'AC-4': { unsupported: 'AC-4' },
  HEVC: { isVideo: true },
  AV01: { isVideo: true },
  'VC-1': { isVideo: true },
};
const DESCRIBED: Readonly<Record<number, Coding>> = {
  106: { framing: 'ac3' },
  122: { framing: 'eac3' },
  123: { unsupported: 'DTS' },
  124: { framing: 'latm' },
};
const REGISTRATION = 5;
const EXTENSION = 127;
const OPUS_EXTENSION = 128;

function codingOf(type: number, descriptors: Uint8Array): Coding {
  if (VIDEO_TYPES.has(type)) return { isVideo: true };
  if (type !== PRIVATE_DATA) return TYPES[type] ?? {};
  for (const { tag, body } of descriptorsOf(descriptors)) {
    if (tag === REGISTRATION && hasAscii(body, 0, 'Opus')) return opusOf(descriptors);
    const coding = tag === REGISTRATION ? REGISTERED[ascii(body, 0, 4)] : DESCRIBED[tag];
    if (coding) return coding;
  }
  return {};
}

function* descriptorsOf(bytes: Uint8Array): Generator<{ readonly tag: number; readonly body: Uint8Array }> {
  for (let at = 0; at + 2 <= bytes.length; at += 2 + bytes[at + 1]) {
    yield { tag: bytes[at], body: bytes.subarray(at + 2, at + 2 + bytes[at + 1]) };
  }
}

/** Opus by the channel code of its descriptor; other codes than channel counts are dual mono and custom layouts. */
function opusOf(descriptors: Uint8Array): Coding {
  for (const { tag, body } of descriptorsOf(descriptors)) {
    if (tag !== EXTENSION || body[0] !== OPUS_EXTENSION || body.length < 2) continue;
    const isUsual = body[1] >= 1 && body[1] <= MAX_OPUS_CHANNELS;
    return isUsual ? { framing: 'opus', channels: body[1] } : { unsupported: 'Opus with an unusual order of channels' };
  }
  return { framing: 'opus', channels: 2 };
}

/** Matches no packet: the program has no usable audio. */
const NO_PID = -1;
/** Faults and state of a walk. */
export type TsFaults = PacketsEnd & {
  /** PID of the audio, if it has changed. */
  pid?: number;
  /** Whether spans of the program have only audio in another coding. */
  hasOther?: boolean;
  /** Number of overflows of the 33-bit clock. */
  wraps?: number;
  /** Last time of the clock, overflows included. */
  lastSeconds?: number;
};

interface WantedStream {
  readonly pid: number;
  readonly framing: string;
  readonly channels: number;
}

/**
 * Follows changes of the tables of a program. After concatenated or switched streams the audio may have another PID,
 * and its old PID may be the video's.
 */
export class ProgramWatch {
  /** PIDs of tables that may replace the program's, while the program association table does not list it. */
  #candidates: readonly number[] = [];
  readonly #sections: Sections = new Map();

  constructor(
    private program: Pick<TsProgram, 'number' | 'tablePid'>,
    private readonly stream: WantedStream,
    private readonly faults: TsFaults,
  ) {}

  /** PID of the audio. */
  get pid(): number {
    return this.faults.pid ?? this.stream.pid;
  }

  /** Must be called with every packet, in order. @returns the PID of the audio from this packet */
  pidAfter({ pid, isStart, payload }: TsPacket): number {
    if (pid !== PAT_PID && pid !== this.program.tablePid && !this.#candidates.includes(pid)) return this.pid;
    const section = joinSection(this.#sections, pid, isStart, payload);
    if (!section || !isInForce(section)) return this.pid;
    if (pid === PAT_PID) this.#updatePrograms(section);
    else this.#updateStreams(programOf(section, pid));
    return this.pid;
  }

  #updatePrograms(section: Uint8Array): void {
    const listed = programsOf(section);
    const { number, tablePid } = this.program;
    const isListed = listed.some((other) => other.number === number && other.tablePid === tablePid);
    this.#candidates = isListed ? [] : listed.map((other) => other.tablePid);
  }

  #updateStreams(program: TsProgram): void {
    const { number, tablePid, streams } = program;
    const isCandidate = this.#candidates.includes(tablePid);
    if (!isCandidate && (number !== this.program.number || tablePid !== this.program.tablePid)) return;
    const audio = streams.filter(({ framing, unsupported }) => framing || unsupported);
    const fitting = audio.filter(
      ({ framing, channels = 0 }) => framing === this.stream.framing && channels === this.stream.channels,
    );
    if (isCandidate && this.#candidates.length > 1 && fitting.length === 0) return;
    if (isCandidate) {
      this.program = program;
      this.#candidates = [];
    }
    if (fitting.some(({ pid }) => pid === this.pid)) return;
    this.faults.hasOther ||= fitting.length === 0 && audio.length > 0;
    // If the table does not list the PID at all, its packets are still taken as audio.
    const isTaken = streams.some(({ pid }) => pid === this.pid);
    this.faults.pid = fitting[0]?.pid ?? (isTaken ? NO_PID : this.pid);
  }
}
