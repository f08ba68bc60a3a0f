import type { BlockReader } from '../../block-reader.ts';
import { ascii, hasAscii, u16be } from '../../bytes.ts';
import { crc32 } from '../ogg/crc.ts';
import { MAX_OPUS_CHANNELS } from './opus.ts';
import { tsPackets } from './ts-packets.ts';

/** How the sound of one stream is framed. */
export type Framing = 'adts' | 'latm' | 'mpeg' | 'ac3' | 'eac3' | 'opus';

export interface TsStream {
  readonly pid: number;
  /** Undefined for video, subtitles and others. */
  readonly framing?: Framing;
  readonly isPictures?: boolean;
  /** Of Opus. */
  readonly channels?: number;
  /** Name of a sound coding that is not decoded. */
  readonly foreign?: string;
}

/** One program of the stream, as its table describes it. */
export interface TsProgram {
  readonly number: number;
  readonly tablePid: number;
  readonly streams: readonly TsStream[];
}

/** Bytes looked at for the tables, which come several times a second, and for sound that they name later. */
const SEARCH_BYTES = 8 << 20;
const MAX_SECTION_BYTES = 1024;
export const PAT_PID = 0;

/** The first program with sound, else the first one; undefined where there are no tables. A stream may begin with a picture alone. */
export async function readProgram(reader: BlockReader, stride: number, from: number): Promise<TsProgram | undefined> {
  const sections: Sections = new Map();
  const programs = new Map<number, TsProgram>();
  let pids: readonly number[] = [];
  const found = () => pids.map((pid) => programs.get(pid)).filter((program) => program !== undefined);
  const withSound = () => found().find(({ streams }) => streams.some((stream) => stream.framing));
  for await (const packets of tsPackets(reader, stride, from)) {
    for (const { pid, isStart, payload } of packets) {
      if (pid !== PAT_PID && !pids.includes(pid)) continue;
      const section = joinSection(sections, pid, isStart, payload);
      if (!section) continue;
      if (pid === PAT_PID) {
        const listed = [...new Set(programsOf(section).map(({ tablePid }) => tablePid))];
        if (listed.length > 0) pids = listed;
      } else programs.set(pid, programOf(section, pid));
      const best = pids.length > 0 && pids.every((tablePid) => programs.has(tablePid)) ? withSound() : undefined;
      if (best) return best;
    }
    if ((packets.at(-1)?.position ?? 0) > from + SEARCH_BYTES) break;
  }
  return withSound() ?? found()[0];
}

/** The beginnings of sections that are not whole yet, by their PID. */
export type Sections = Map<number, Uint8Array>;

/** Puts a section together; returned when it is whole. */
export function joinSection(
  sections: Sections,
  pid: number,
  isStart: boolean,
  payload: Uint8Array,
): Uint8Array | undefined {
  const before = isStart ? undefined : sections.get(pid);
  if (!isStart && !before) return undefined;
  const part = isStart ? payload.subarray(1 + payload[0]) : payload;
  const joined = new Uint8Array((before?.length ?? 0) + part.length);
  if (before) joined.set(before);
  joined.set(part, before?.length ?? 0);
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

/** Number and table of each program, by the table of all. */
export function programsOf(section: Uint8Array): Pick<TsProgram, 'number' | 'tablePid'>[] {
  const programs: Pick<TsProgram, 'number' | 'tablePid'>[] = [];
  if (section[0] !== PAT_TABLE) return programs;
  for (let at = 8; at + 4 <= section.length - CRC_BYTES; at += 4) {
    const number = u16be(section, at);
    if (number !== 0) programs.push({ number, tablePid: u16be(section, at + 2) & 0x1fff });
  }
  return programs;
}

/** Whether a section holds now, is all of its table, and is whole by its checksum. */
export const isInForce = (section: Uint8Array): boolean =>
  section.length >= 12 && (section[5] & 1) === 1 && section[6] === 0 && section[7] === 0 && crc32(section, -1) === 0;

export const programOf = (section: Uint8Array, tablePid: number): TsProgram => ({
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

type Coding = Pick<TsStream, 'framing' | 'channels' | 'foreign' | 'isPictures'>;

/** Sound by its stream type (ISO/IEC 13818-1 table 2-34; ATSC A/52 annex A; ETSI TS 101 154). */
const TYPES: Readonly<Record<number, Coding>> = {
  3: { framing: 'mpeg' },
  4: { framing: 'mpeg' },
  15: { framing: 'adts' },
  17: { framing: 'latm' },
  128: { foreign: 'uncompressed samples (LPCM)' },
  129: { framing: 'ac3' },
  130: { foreign: 'DTS' },
  131: { foreign: 'Dolby TrueHD' },
  132: { framing: 'eac3' },
  133: { foreign: 'DTS-HD' },
  134: { foreign: 'DTS-HD' },
  135: { framing: 'eac3' },
};
/** Pictures, from MPEG-1 to VVC, with those of other bodies (AVS, Dirac, VC-1). */
const PICTURE_TYPES = new Set([1, 2, 16, 27, 30, 31, 32, 36, 51, 66, 209, 210, 212, 234]);
const PRIVATE_DATA = 6;

const REGISTERED: Readonly<Record<string, Coding>> = {
  'AC-3': { framing: 'ac3' },
  EAC3: { framing: 'eac3' },
  DTS1: { foreign: 'DTS' },
  DTS2: { foreign: 'DTS' },
  DTS3: { foreign: 'DTS' },
  'AC-4': { foreign: 'AC-4' },
  HEVC: { isPictures: true },
  AV01: { isPictures: true },
  'VC-1': { isPictures: true },
};
const DESCRIBED: Readonly<Record<number, Coding>> = {
  106: { framing: 'ac3' },
  122: { framing: 'eac3' },
  123: { foreign: 'DTS' },
  124: { framing: 'latm' },
};
const REGISTRATION = 5;
const EXTENSION = 127;
const OPUS_EXTENSION = 128;

function codingOf(type: number, descriptors: Uint8Array): Coding {
  if (PICTURE_TYPES.has(type)) return { isPictures: true };
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

/** Opus by the number of channels of its descriptor; the other codes are two languages in one stream, and layouts of their own. */
function opusOf(descriptors: Uint8Array): Coding {
  for (const { tag, body } of descriptorsOf(descriptors)) {
    if (tag !== EXTENSION || body[0] !== OPUS_EXTENSION || body.length < 2) continue;
    const isUsual = body[1] >= 1 && body[1] <= MAX_OPUS_CHANNELS;
    return isUsual ? { framing: 'opus', channels: body[1] } : { foreign: 'Opus with an unusual order of channels' };
  }
  return { framing: 'opus', channels: 2 };
}
