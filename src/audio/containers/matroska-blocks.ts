import type { BlockReader } from '../block-reader.ts';
import { type PacketWalk, type RawPacket, StepBudget } from '../container.ts';

/** Element ids (RFC 9559 §5). */
export const ID = {
  EBML: 0x1a45dfa3,
  DOC_TYPE: 0x4282,
  SEGMENT: 0x18538067,
  INFO: 0x1549a966,
  TIMESTAMP_SCALE: 0x2ad7b1,
  TRACKS: 0x1654ae6b,
  TRACK_ENTRY: 0xae,
  TRACK_NUMBER: 0xd7,
  TRACK_TYPE: 0x83,
  FLAG_ENABLED: 0xb9,
  FLAG_DEFAULT: 0x88,
  CODEC_ID: 0x86,
  CODEC_PRIVATE: 0x63a2,
  CODEC_DELAY: 0x56aa,
  AUDIO: 0xe1,
  SAMPLING_FREQUENCY: 0xb5,
  CHANNELS: 0x9f,
  BIT_DEPTH: 0x6264,
  CONTENT_ENCODINGS: 0x6d80,
  CONTENT_ENCODING: 0x6240,
  CONTENT_COMPRESSION: 0x5034,
  CONTENT_COMP_ALGO: 0x4254,
  CONTENT_COMP_SETTINGS: 0x4255,
  CONTENT_ENCRYPTION: 0x5035,
  CLUSTER: 0x1f43b675,
  TIMESTAMP: 0xe7,
  SIMPLE_BLOCK: 0xa3,
  BLOCK_GROUP: 0xa0,
  BLOCK: 0xa1,
  DISCARD_PADDING: 0x75a2,
} as const;

/** Elements next to clusters or blocks; skipped by their size. */
const SKIPPED: ReadonlySet<number> = new Set([
  0x114d9b74, // SeekHead
  0x1c53bb6b, // Cues
  0x1941a469, // Attachments
  0x1043a770, // Chapters
  0x1254c367, // Tags
  ID.INFO,
  ID.TRACKS,
  0xec, // Void
  0xbf, // CRC-32
  0xa7, // Position
  0xab, // PrevSize
  0x5854, // SilentTracks
  0xaf, // EncryptedBlock
]);

/** One EBML element (RFC 8794): `[bodyStart, bodyStart + size)` without its header. */
interface Element {
  readonly id: number;
  readonly start: number;
  readonly bodyStart: number;
  /** Undefined for an element of unknown size, which ends at the next element of a higher level. */
  readonly size: number | undefined;
}

/** Longest header: 4 bytes of id, 8 of size. */
export const MAX_HEADER_BYTES = 12;

/** Elements walked on one level outside the clusters. */
const MAX_ELEMENTS = 10_000;

/** The element whose header is at `at` of `view`, at `position` of the file; undefined if invalid. */
function parseElement(view: Uint8Array, at: number, position: number): Element | undefined {
  const idBytes = Math.clz32(view[at] ?? 0) - 23;
  const sizeAt = at + idBytes;
  const sizeBytes = Math.clz32(view[sizeAt] ?? 0) - 23;
  if (idBytes > 4 || sizeBytes > 8 || sizeAt + sizeBytes > view.length) return undefined;
  let id = 0;
  for (let i = at; i < sizeAt; i++) id = id * 256 + view[i];
  let size = view[sizeAt] & (0xff >> sizeBytes);
  let isUnknown = size === 0xff >> sizeBytes;
  for (let i = 1; i < sizeBytes; i++) {
    size = size * 256 + view[sizeAt + i];
    isUnknown &&= view[sizeAt + i] === 0xff;
  }
  const bodyStart = position + idBytes + sizeBytes;
  return { id, start: position, bodyStart, size: isUnknown ? undefined : size };
}

/** Elements in `[from, to)` of the file, up to the first that is invalid or of unknown size. */
export async function* elementsOf(reader: BlockReader, from: number, to: number): AsyncGenerator<Element> {
  let position = from;
  for (let count = 0; count < MAX_ELEMENTS && position < to; count++) {
    const element = parseElement(await reader.peek(position, MAX_HEADER_BYTES), 0, position);
    if (!element) return;
    yield element;
    if (element.size === undefined) return;
    position = element.bodyStart + element.size;
  }
}

/** Elements in bytes in memory. */
export function* elementsIn(bytes: Uint8Array): Generator<{ id: number; body: Uint8Array }> {
  for (let at = 0; at < bytes.length; ) {
    const element = parseElement(bytes, at, at);
    if (!element) return;
    const end = element.size === undefined ? bytes.length : element.bodyStart + element.size;
    yield { id: element.id, body: bytes.subarray(element.bodyStart, end) };
    at = end;
  }
}

/** A copy of an element's body, at most `maxBytes` of it. */
export async function readBody(reader: BlockReader, element: Element, maxBytes: number): Promise<Uint8Array> {
  const length = Math.min(element.size ?? maxBytes, maxBytes);
  return (await reader.peek(element.bodyStart, length)).slice(0, length);
}

/** Unsigned big-endian of up to eight bytes (RFC 8794, section 7.2); exact up to 2^53. */
export function uintOf(body: Uint8Array): number {
  let value = 0;
  for (const byte of body.subarray(0, 8)) value = value * 256 + byte;
  return value;
}

/** Signed two's complement of up to eight bytes (RFC 8794, section 7.1); exact up to 2^53. */
function intOf(body: Uint8Array): number {
  const value = uintOf(body);
  return body.length > 0 && body[0] & 0x80 ? value - 256 ** Math.min(8, body.length) : value;
}

/** IEEE 754 of four or eight bytes (RFC 8794, section 7.3); 0 for any other length. */
export function floatOf(body: Uint8Array): number {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  return body.length === 4 ? view.getFloat32(0) : body.length === 8 ? view.getFloat64(0) : 0;
}

const XIPH = 1;
const FIXED = 2;

/** At most 256 packets, each size in at most 8 bytes (more with Xiph lacing). */
const MAX_LACE_BYTES = 1 << 14;

interface Laces {
  readonly sizes: readonly number[];
  /** Bytes before the first packet. */
  readonly headerBytes: number;
}

const NO_LACES: Laces = { sizes: [], headerBytes: 0 };

/**
 * Sizes of the packets that share one block (RFC 9559 §10.3); none if they do not fit into it.
 *
 * @param head the block after its header, or its beginning
 * @param bytes length of the complete block after its header
 */
export function laceSizes(head: Uint8Array, lacing: number, bytes: number): Laces {
  if (head.length === 0) return NO_LACES;
  const count = head[0] + 1;
  if (lacing === FIXED) {
    const size = (bytes - 1) / count;
    return Number.isInteger(size) ? { sizes: new Array<number>(count).fill(size), headerBytes: 1 } : NO_LACES;
  }
  const sizes: number[] = [];
  let at = 1;
  let sum = 0;
  for (let i = 0; i < count - 1; i++) {
    const read = lacing === XIPH ? xiphSize(head, at) : ebmlSize(head, at, sizes.at(-1));
    if (!read || read.size < 0) return NO_LACES;
    sizes.push(read.size);
    sum += read.size;
    at = read.end;
  }
  const rest = bytes - at - sum;
  return rest < 0 ? NO_LACES : { sizes: [...sizes, rest], headerBytes: at };
}

function xiphSize(head: Uint8Array, from: number): { size: number; end: number } | undefined {
  let size = 0;
  for (let at = from; at < head.length; at++) {
    size += head[at];
    if (head[at] < 255) return { size, end: at + 1 };
  }
  return undefined;
}

/** The first size is absolute, each other one is the difference to its predecessor. */
function ebmlSize(head: Uint8Array, at: number, before: number | undefined): { size: number; end: number } | undefined {
  const length = Math.clz32(head[at] ?? 0) - 23;
  if (length > 8 || at + length > head.length) return undefined;
  let value = head[at] & (0xff >> length);
  for (let i = 1; i < length; i++) value = value * 256 + head[at + i];
  const size = before === undefined ? value : before + value - (2 ** (7 * length - 1) - 1);
  return { size, end: at + length };
}

export interface BlockWalk {
  /** Undefined for the blocks of all tracks, whose laces are not split. */
  readonly trackNumber: number | undefined;
  readonly nsPerTick: number;
  /** Bytes that every packet begins with and that the writer left out. */
  readonly prefix: Uint8Array;
}

/** Result of a walk. */
export type BlocksEnd = {
  /** Whether it ended at the header of an appended file. */
  hasAnother?: boolean;
  /** Whether it ended in the middle of a block, after which no cluster follows. */
  isCut?: boolean;
  /** Whether it ended after too many elements without a packet. */
  isEndless?: boolean;
  /** Whether damage was skipped before the first packet. */
  isLateStart?: boolean;
  /** Samples missing at the beginning. */
  lostSamples?: number;
};

/** Packets of one run. */
const MAX_RUN = 512;
/** Bytes after damage that are searched for the next cluster. */
const MAX_SEARCH_BYTES = 64 << 20;
/** Track number, time, flags, and then the sizes of laced packets. */
const BLOCK_HEADER_BYTES = 12;
/** Elements of one group. */
const MAX_GROUP_ELEMENTS = 32;
/** Bytes that compensate for an element without a packet. */
const BYTES_PER_ELEMENT = 32;
/** Distance from the start of an unknown element within which elements must confirm it: one block of the reader. */
const MAX_UNKNOWN_BYTES = 1 << 20;
/**
 * Maximum number of elements read after an unknown one, and the number of them that must be known: one in thirty bytes
 * of damage looks like an element.
 */
const MAX_CONFIRMING = 4;
const CONFIRMED = 2;

interface ReadResult {
  readonly packets: readonly RawPacket[];
  readonly paddingNs: number;
  /** Elements read. */
  readonly elements: number;
}

const NO_PACKETS: ReadResult = { packets: [], paddingNs: 0, elements: 1 };

/**
 * The packets of a track from the cluster at `from`. The size of clusters is ignored, so that those of live recordings,
 * which state none, need no special case. After damage it continues at the next cluster.
 */
export async function* walkBlocks(reader: BlockReader, walk: BlockWalk, from: number, end: BlocksEnd = {}): PacketWalk {
  const budget = new StepBudget(BYTES_PER_ELEMENT, from);
  let position = from;
  let clusterTicks = 0;
  let clusterEnd: number | undefined;
  let entry: number | undefined;
  let packets: RawPacket[] = [];
  end.isEndless = false;
  end.isCut = false;
  end.isLateStart = false;
  let hasPackets = false;
  while (position < reader.sizeBytes) {
    const element = parseElement(await reader.peek(position, MAX_HEADER_BYTES), 0, position);
    let found = NO_PACKETS;
    if (element?.id === ID.CLUSTER) {
      if (packets.length > 0) yield { packets };
      packets = [];
      entry = position;
      clusterTicks = 0;
      clusterEnd = element.size === undefined ? undefined : element.bodyStart + element.size;
      position = element.bodyStart;
    } else if (!isKnownAndComplete(reader, element)) {
      end.hasAnother = element?.id === ID.SEGMENT || element?.id === ID.EBML;
      if (end.hasAnother) break;
      // An unknown element, damage, the cut end of the file, or data after the recording: no cluster follows the latter
      // two.
      const endOfUnknown = await unknownElementEnd(reader, element, clusterEnd);
      const next = endOfUnknown ?? (await findCluster(reader, position + 1));
      end.isLateStart ||= endOfUnknown === undefined && !hasPackets;
      if (next === undefined) {
        end.isCut = element?.id === ID.SIMPLE_BLOCK || element?.id === ID.BLOCK_GROUP;
        break;
      }
      position = next;
    } else {
      const { size } = element;
      position = element.bodyStart + size;
      if (element.id === ID.TIMESTAMP)
        clusterTicks = uintOf((await reader.peek(element.bodyStart, 8)).subarray(0, size));
      else if (element.id === ID.SIMPLE_BLOCK) found = await readSimple(reader, walk, clusterTicks, element);
      else if (element.id === ID.BLOCK_GROUP) found = await readGroup(reader, walk, clusterTicks, element);
    }
    hasPackets ||= found.packets.length > 0;
    for (const packet of found.packets) {
      packets.push(entry === undefined ? packet : { ...packet, entry });
      entry = undefined;
    }
    const hasPadding = found.paddingNs > 0 && found.packets.length > 0;
    if (packets.length >= MAX_RUN || hasPadding) {
      yield { packets, paddingSeconds: hasPadding ? found.paddingNs / 1e9 : 0 };
      packets = [];
    }
    end.isEndless = !budget.spend(
      position,
      found.elements + emptyLaces(walk, found),
      Math.min(1, found.packets.length),
    );
    if (end.isEndless) break;
  }
  if (packets.length > 0) yield { packets };
}

/** Empty packets of a laced block count as elements: each takes as much time, and a short block can have 256. */
const emptyLaces = ({ prefix }: BlockWalk, { packets }: ReadResult): number =>
  packets.length < 2 ? 0 : packets.filter(({ length }) => length === prefix.length).length;

/** Whether an element is known and ends inside the file; otherwise its size is damaged, or the file is truncated. */
const isKnownAndComplete = (
  reader: BlockReader,
  element: Element | undefined,
): element is Element & { readonly size: number } =>
  element?.size !== undefined && isKnown(element.id) && element.bodyStart + element.size <= reader.sizeBytes;

const isKnown = (elementId: number): boolean =>
  elementId === ID.TIMESTAMP || elementId === ID.SIMPLE_BLOCK || elementId === ID.BLOCK_GROUP || SKIPPED.has(elementId);

/**
 * End of an unknown element, which is skipped by its size (RFC 8794 §6.2); undefined for damage. The elements after it
 * must be valid, up to the end of its cluster or of the file.
 */
async function unknownElementEnd(
  reader: BlockReader,
  element: Element | undefined,
  clusterEnd: number | undefined,
): Promise<number | undefined> {
  if (element?.size === undefined || isKnown(element.id)) return undefined;
  const elementEnd = element.bodyStart + element.size;
  const isInside = clusterEnd !== undefined && element.start < clusterEnd;
  const until = Math.min(isInside ? clusterEnd : reader.sizeBytes, reader.sizeBytes);
  let position = elementEnd;
  for (let read = 0, known = 0; read < MAX_CONFIRMING; read++) {
    if (position === until) return elementEnd;
    if (position > until || position - element.start > MAX_UNKNOWN_BYTES) return undefined;
    const next = parseElement(await reader.peek(position, MAX_HEADER_BYTES), 0, position);
    if (next?.id === ID.CLUSTER) return elementEnd;
    if (next?.size === undefined) return undefined;
    position = next.bodyStart + next.size;
    if (isKnownAndComplete(reader, next) && ++known === CONFIRMED) return elementEnd;
  }
  return undefined;
}

async function readSimple(
  reader: BlockReader,
  walk: BlockWalk,
  clusterTicks: number,
  element: Element,
): Promise<ReadResult> {
  return { ...NO_PACKETS, packets: await readBlock(reader, walk, clusterTicks, element) };
}

async function readGroup(
  reader: BlockReader,
  walk: BlockWalk,
  clusterTicks: number,
  group: Element,
): Promise<ReadResult> {
  let packets: readonly RawPacket[] = [];
  let paddingNs = 0;
  let elements = 1;
  const end = group.bodyStart + (group.size ?? 0);
  for (let position = group.bodyStart; position < end && elements <= MAX_GROUP_ELEMENTS; elements++) {
    const element = parseElement(await reader.peek(position, MAX_HEADER_BYTES), 0, position);
    if (element?.size === undefined || element.bodyStart + element.size > end) break;
    position = element.bodyStart + element.size;
    if (element.id === ID.BLOCK) packets = await readBlock(reader, walk, clusterTicks, element);
    else if (element.id === ID.DISCARD_PADDING) {
      const bytes = Math.min(8, element.size);
      paddingNs = intOf((await reader.peek(element.bodyStart, bytes)).subarray(0, bytes));
    }
  }
  return { packets, paddingNs, elements };
}

/** The packets of one block; none if it belongs to another track. */
async function readBlock(
  reader: BlockReader,
  walk: BlockWalk,
  clusterTicks: number,
  { bodyStart, size = 0 }: Element,
): Promise<readonly RawPacket[]> {
  const view = await reader.peek(bodyStart, Math.min(size, BLOCK_HEADER_BYTES));
  const numberBytes = Math.clz32(view[0] ?? 0) - 23;
  const headerBytes = numberBytes + 3;
  if (numberBytes > 4 || headerBytes > size || headerBytes > view.length) return [];
  const trackNumber = uintOf(view.subarray(0, numberBytes)) - 2 ** (7 * numberBytes);
  if (walk.trackNumber !== undefined && trackNumber !== walk.trackNumber) return [];
  const ticks = clusterTicks + (((view[numberBytes] << 24) | (view[numberBytes + 1] << 16)) >> 16);
  const lacing = (view[numberBytes + 2] >> 1) & 3;
  const seconds = (ticks * walk.nsPerTick) / 1e9;
  const start = bodyStart + headerBytes;
  const bytes = size - headerBytes;
  if (walk.trackNumber === undefined) return [{ offset: start, length: bytes, seconds, trackNumber }];
  if (lacing === 0) return [packetAt(walk, start, bytes, seconds)];
  const head = await reader.peek(start, Math.min(bytes, MAX_LACE_BYTES));
  const laces = laceSizes(head, lacing, bytes);
  const packets: RawPacket[] = [];
  let offset = start + laces.headerBytes;
  for (const length of laces.sizes) {
    packets.push(packetAt(walk, offset, length, packets.length === 0 ? seconds : undefined));
    offset += length;
  }
  return packets;
}

function packetAt({ prefix }: BlockWalk, offset: number, length: number, seconds: number | undefined): RawPacket {
  if (prefix.length === 0) return { offset, length, seconds };
  return { offset, length: prefix.length + length, prefix, seconds };
}

/** Position of the next cluster id. */
async function findCluster(reader: BlockReader, from: number): Promise<number | undefined> {
  const until = Math.min(reader.sizeBytes, from + MAX_SEARCH_BYTES);
  for (let position = from; position + MAX_HEADER_BYTES <= until; ) {
    const view = await reader.peek(position, MAX_HEADER_BYTES);
    for (let at = view.indexOf(0x1f); at >= 0 && at + 4 <= view.length; at = view.indexOf(0x1f, at + 1)) {
      if (view[at + 1] === 0x43 && view[at + 2] === 0xb6 && view[at + 3] === 0x75) return position + at;
    }
    position += Math.max(1, view.length - 3);
  }
  return undefined;
}
