import { release } from '../audio/memory.ts';
import type { LocalSpeakers } from './local-speakers.ts';
import type { TuningBySetting } from './model-ports.ts';
import type { Subsegments } from './windows.ts';

/** Facts about the models for the stages after them. Equal in all parts of a recording. */
export interface ModelFacts {
  readonly segmentationId: string;
  readonly embeddingId: string;
  readonly windowSamples: number;
  readonly stepSamples: number;
  readonly maxLocalSpeakers: number;
  readonly maxSimultaneous: number;
  readonly classes: number;
  readonly frameShiftSamples: number;
  readonly frameSizeSamples: number;
  readonly framesPerWindow: number;
  readonly dimension: number;
  /** Tuned parameters of segmentation and embedding model. */
  readonly tuned: readonly TuningBySetting[];
}

/** Windows of a shard: index of the first on the recording's grid, and their number. */
interface WindowRange {
  readonly firstWindow: number;
  readonly windowCount: number;
}

/** Level of silence, the lowest that is measured; dB of full scale. */
export const SILENCE_DB = -126;

/** Output of the models for one shard. */
export interface ShardPart extends WindowRange {
  readonly facts: ModelFacts;
  readonly speakers: LocalSpeakers;
  readonly subsegments: Subsegments;
  /** [windowCount, framesPerWindow, classes] probabilities of the powerset classes, 255 is 1 */
  readonly probabilities: Uint8Array;
  /** Level of the loudest tenth of a second of the shard's windows, dB of full scale. */
  readonly loudestDb: number;
}

/** A part without its frames. */
export type EmbeddingsSection = Omit<ShardPart, 'probabilities'>;

/** Contents of a part, known before its sections are read. */
interface PartCounts {
  readonly speakers: number;
  readonly subsegments: number;
}

/**
 * A stored part. The clustering needs all embeddings at once, the reconstruction the frames of one part at a time.
 * Every array that is read has its own buffer.
 */
export interface PartReader {
  readonly facts: ModelFacts;
  readonly counts: PartCounts;
  readEmbeddings(): Promise<EmbeddingsSection>;
  readPart(): Promise<ShardPart>;
}

/**
 * Layout, little-endian: `RCPT`, u16 version, u16 zero, u32 length of the header, u32 length of the embeddings section,
 * u32 length of the frames section, then header, embeddings and frames. The header is JSON (facts, window range, number
 * of speakers and subsegments, loudest level). The embeddings section holds per speaker u32 window, u8 local speaker,
 * three zeros, f32 clean and f32 active seconds, f32 × dimension; then per subsegment u32 index, f32 × dimension. The
 * frames section holds `probabilities`.
 */
const MAGIC = 0x54504352;
/** Raise `WORK_VERSION` (`src/jobs/work-keys.ts`) with it: running jobs have stored parts. */
const VERSION = 5;
const PREFIX_BYTES = 20;
/**
 * Bytes of the first read of a part. Prefix and header fit in, unless many parameters are tuned: with the default pack
 * they have about 430 bytes.
 */
const OPENING_BYTES = 2048;
const SPEAKER_BYTES = 16;
const SUBSEGMENT_BYTES = 4;

interface Header extends WindowRange {
  readonly facts: ModelFacts;
  readonly speakerCount: number;
  readonly subsegmentCount: number;
  readonly loudestDb: number;
}

/** The part as bytes, equal for equal parts. */
export function encodePart(part: ShardPart): Uint8Array {
  const { facts, firstWindow, windowCount, speakers, subsegments, probabilities, loudestDb } = part;
  const header: Header = {
    facts,
    firstWindow,
    windowCount,
    speakerCount: speakers.count,
    subsegmentCount: subsegments.count,
    loudestDb,
  };
  const headerBytes = encodeAscii(JSON.stringify(header));
  const stride = SPEAKER_BYTES + 4 * facts.dimension;
  const subsegmentStride = SUBSEGMENT_BYTES + 4 * facts.dimension;
  const embeddingBytes = stride * speakers.count + subsegmentStride * subsegments.count;
  const bytes = new Uint8Array(PREFIX_BYTES + headerBytes.length + embeddingBytes + probabilities.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, VERSION, true);
  view.setUint32(8, headerBytes.length, true);
  view.setUint32(12, embeddingBytes, true);
  view.setUint32(16, probabilities.length, true);
  bytes.set(headerBytes, PREFIX_BYTES);
  const start = PREFIX_BYTES + headerBytes.length;
  for (let row = 0; row < speakers.count; row++) {
    const at = start + row * stride;
    view.setUint32(at, speakers.windows[row], true);
    view.setUint8(at + 4, speakers.locals[row]);
    view.setFloat32(at + 8, speakers.cleanSeconds[row], true);
    view.setFloat32(at + 12, speakers.activeSeconds[row], true);
    for (let index = 0; index < facts.dimension; index++) {
      view.setFloat32(at + SPEAKER_BYTES + 4 * index, speakers.embeddings[row * facts.dimension + index], true);
    }
  }
  const subsegmentStart = start + stride * speakers.count;
  for (let row = 0; row < subsegments.count; row++) {
    const at = subsegmentStart + row * subsegmentStride;
    view.setUint32(at, subsegments.indices[row], true);
    for (let index = 0; index < facts.dimension; index++) {
      view.setFloat32(at + SUBSEGMENT_BYTES + 4 * index, subsegments.embeddings[row * facts.dimension + index], true);
    }
  }
  bytes.set(probabilities, start + embeddingBytes);
  return bytes;
}

/**
 * Opens a stored part.
 * @param read returns bytes [offset, offset + length) of the output of `encodePart`, fewer only at its end; in their
 *   own buffer, or as a view of a larger one, which stays unchanged
 * @throws if the part is damaged or has another version
 */
export async function openPart(read: (offset: number, length: number) => Promise<Uint8Array>): Promise<PartReader> {
  const opening = await read(0, OPENING_BYTES);
  if (opening.length < PREFIX_BYTES) throw damaged('too short');
  const view = new DataView(opening.buffer, opening.byteOffset, opening.byteLength);
  if (view.getUint32(0, true) !== MAGIC || view.getUint16(4, true) !== VERSION) throw damaged('not a part');
  const headerLength = view.getUint32(8, true);
  const embeddingsLength = view.getUint32(12, true);
  const framesLength = view.getUint32(16, true);
  const start = PREFIX_BYTES + headerLength;
  const headerBytes = start > opening.length ? await exactly(read, PREFIX_BYTES, headerLength) : undefined;
  const header = parseHeader(headerBytes ?? opening.subarray(PREFIX_BYTES, start));
  const { facts, windowCount, speakerCount, subsegmentCount } = header;
  if (embeddingsLength !== bytesOf(header).speakers + bytesOf(header).subsegments) throw damaged('embeddings');
  if (framesLength !== windowCount * facts.framesPerWindow * facts.classes) throw damaged('frames');
  return {
    facts,
    counts: { speakers: speakerCount, subsegments: subsegmentCount },
    async readEmbeddings() {
      const bytes = await exactly(read, start, embeddingsLength);
      const section = decodeEmbeddings(bytes, header);
      release(bytes);
      return section;
    },
    async readPart() {
      const bytes = await exactly(read, start, embeddingsLength + framesLength);
      const section = decodeEmbeddings(bytes.subarray(0, embeddingsLength), header);
      const probabilities = bytes.slice(embeddingsLength);
      release(bytes);
      return { ...section, probabilities };
    },
  };
}

async function exactly(
  read: (offset: number, length: number) => Promise<Uint8Array>,
  offset: number,
  length: number,
): Promise<Uint8Array> {
  if (length === 0) return new Uint8Array(0);
  const bytes = await read(offset, length);
  if (bytes.length !== length) throw damaged('too short');
  return bytes;
}

function parseHeader(bytes: Uint8Array): Header {
  let header: Header;
  try {
    header = JSON.parse(decodeAscii(bytes)) as Header;
  } catch {
    throw damaged('header');
  }
  const { facts } = header;
  const { firstWindow, windowCount, speakerCount, subsegmentCount, loudestDb } = header;
  const counts = [firstWindow, windowCount, speakerCount, subsegmentCount, facts?.dimension, facts?.classes];
  const positive = [facts?.framesPerWindow, facts?.stepSamples, facts?.windowSamples, facts?.frameShiftSamples];
  const isCount = (value: unknown) => typeof value === 'number' && Number.isInteger(value) && value >= 0;
  if (!counts.every(isCount) || !positive.every((value) => isCount(value) && value > 0)) throw damaged('header');
  if (typeof loudestDb !== 'number') throw damaged('header');
  return header;
}

/** Bytes of the speakers and of the subsegments in the embeddings section. */
function bytesOf({ facts, speakerCount, subsegmentCount }: Header): { speakers: number; subsegments: number } {
  return {
    speakers: speakerCount * (SPEAKER_BYTES + 4 * facts.dimension),
    subsegments: subsegmentCount * (SUBSEGMENT_BYTES + 4 * facts.dimension),
  };
}

/** @param bytes the embeddings section, of the length in the header; the results are copies */
function decodeEmbeddings(bytes: Uint8Array, header: Header): EmbeddingsSection {
  const { facts, firstWindow, windowCount, loudestDb } = header;
  const speakerBytes = bytesOf(header).speakers;
  return {
    facts,
    firstWindow,
    windowCount,
    speakers: decodeSpeakers(bytes.subarray(0, speakerBytes), header),
    subsegments: decodeSubsegments(bytes.subarray(speakerBytes), header),
    loudestDb,
  };
}

function decodeSpeakers(bytes: Uint8Array, header: Header): LocalSpeakers {
  const { dimension } = header.facts;
  const count = header.speakerCount;
  const stride = SPEAKER_BYTES + 4 * dimension;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const speakers = {
    count,
    dimension,
    embeddings: new Float32Array(count * dimension),
    windows: new Int32Array(count),
    locals: new Uint8Array(count),
    cleanSeconds: new Float32Array(count),
    activeSeconds: new Float32Array(count),
  };
  for (let row = 0; row < count; row++) {
    const at = row * stride;
    const window = view.getUint32(at, true);
    const local = view.getUint8(at + 4);
    const inRange = window >= header.firstWindow && window < header.firstWindow + header.windowCount;
    if (!inRange || local >= header.facts.maxLocalSpeakers) throw damaged('speakers');
    speakers.windows[row] = window;
    speakers.locals[row] = local;
    speakers.cleanSeconds[row] = view.getFloat32(at + 8, true);
    speakers.activeSeconds[row] = view.getFloat32(at + 12, true);
    for (let index = 0; index < dimension; index++) {
      speakers.embeddings[row * dimension + index] = view.getFloat32(at + SPEAKER_BYTES + 4 * index, true);
    }
  }
  return speakers;
}

function decodeSubsegments(bytes: Uint8Array, header: Header): Subsegments {
  const { dimension } = header.facts;
  const count = header.subsegmentCount;
  const stride = SUBSEGMENT_BYTES + 4 * dimension;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const indices = new Int32Array(count);
  const embeddings = new Float32Array(count * dimension);
  for (let row = 0; row < count; row++) {
    const at = row * stride;
    indices[row] = view.getUint32(at, true);
    if (row > 0 && indices[row] <= indices[row - 1]) throw damaged('subsegments');
    for (let index = 0; index < dimension; index++) {
      embeddings[row * dimension + index] = view.getFloat32(at + SUBSEGMENT_BYTES + 4 * index, true);
    }
  }
  return { count, dimension, indices, embeddings };
}

/** JSON text as ASCII: the pure code has no text encoder, and JSON can escape other characters. */
function encodeAscii(json: string): Uint8Array {
  const escaped = json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return Uint8Array.from(escaped, (character) => character.charCodeAt(0));
}

function decodeAscii(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}

function damaged(what: string): Error {
  return new Error(`a stored part is damaged: ${what}`);
}

/** Stored parts of a recording, in order. The caller owns the arrays that are read and may detach their buffers. */
export interface Parts {
  readonly count: number;
  factsOf(index: number): ModelFacts;
  countsOf(index: number): PartCounts;
  readEmbeddings(index: number): Promise<EmbeddingsSection>;
  readPart(index: number): Promise<ShardPart>;
}

/** Combines opened parts of a recording. */
export function partsOf(readers: readonly PartReader[]): Parts {
  return {
    count: readers.length,
    factsOf: (index) => readers[index].facts,
    countsOf: (index) => readers[index].counts,
    readEmbeddings: (index) => readers[index].readEmbeddings(),
    readPart: (index) => readers[index].readPart(),
  };
}

/** Sums of the counts of all parts. */
export function totalCounts(parts: Parts): PartCounts {
  let speakers = 0;
  let subsegments = 0;
  for (let index = 0; index < parts.count; index++) {
    const counts = parts.countsOf(index);
    speakers += counts.speakers;
    subsegments += counts.subsegments;
  }
  return { speakers, subsegments };
}

/** Results of `read` for each index below `count`, in order. Reads one ahead of the one in use. */
export async function* readAhead<T>(count: number, read: (index: number) => Promise<T>): AsyncGenerator<T> {
  let next = count > 0 ? read(0) : undefined;
  for (let index = 0; next !== undefined; index++) {
    const current = await next;
    next = index + 1 < count ? read(index + 1) : undefined;
    // A failure is thrown where the promise is awaited; an unhandled rejection would end the process.
    next?.catch(() => undefined);
    yield current;
  }
}
