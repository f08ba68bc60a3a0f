import type { BlockReader } from '../../block-reader.ts';
import type { PacketWalk, RawPacket } from '../../packets/packet.ts';
import { StepBudget } from '../../step-budget.ts';
import { type Element, intOf, MAX_HEADER_BYTES, parseElement, uintOf } from './ebml.ts';
import * as id from './ids.ts';
import { laceSizes, MAX_LACE_BYTES } from './lacing.ts';

export interface BlockWalk {
  /** Undefined for the blocks of all tracks, whose laces are not taken apart. */
  readonly trackNumber: number | undefined;
  readonly nsPerTick: number;
  /** Bytes that every packet begins with and that were left out. */
  readonly prefix: Uint8Array;
}

/** How a walk ended. */
export type BlocksEnd = {
  /** At the header of another file that was appended. */
  hasAnother?: boolean;
  /** In the middle of a block, after which no cluster follows. */
  isCut?: boolean;
  /** Among elements that gave no packet, too many of them. */
  isEndless?: boolean;
  /** Whether something damaged was passed over in front of the first packet. */
  isLateStart?: boolean;
  /** Samples that are missing at the beginning. */
  lostSamples?: number;
};

/** Packets of one run. */
const MAX_RUN = 512;
/** How far after a damaged place the next cluster is looked for. */
const MAX_SEARCH_BYTES = 64 << 20;
/** Track number, time, flags, and then the sizes of laced packets. */
const BLOCK_HEADER_BYTES = 12;
/** Elements of one group. */
const MAX_GROUP_ELEMENTS = 32;
/** Bytes that make up for an element without a packet. */
const BYTES_PER_ELEMENT = 32;
/**
 * How far after the start of an unknown element must stand what confirms it: no more than a reader holds beside it.
 */
const MAX_UNKNOWN_BYTES = 1 << 20;
/**
 * Elements looked at after an unknown one, and how many of them must be known: one in thirty bytes of damage looks
 * like one.
 */
const MAX_CONFIRMING = 4;
const CONFIRMED = 2;

interface Found {
  readonly packets: readonly RawPacket[];
  readonly paddingNs: number;
  /** Elements looked at. */
  readonly elements: number;
}

const NOTHING: Found = { packets: [], paddingNs: 0, elements: 1 };

/**
 * The packets of a track from the cluster at `from` on. Clusters are stepped into whatever size they state, so that
 * those of live recordings, which state none, need nothing more. After damage it continues at the next cluster.
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
    let found = NOTHING;
    if (element?.id === id.CLUSTER) {
      if (packets.length > 0) yield { packets };
      packets = [];
      entry = position;
      clusterTicks = 0;
      clusterEnd = element.size === undefined ? undefined : element.bodyStart + element.size;
      position = element.bodyStart;
    } else if (!isWhole(reader, element)) {
      end.hasAnother = element?.id === id.SEGMENT || element?.id === id.EBML;
      if (end.hasAnother) break;
      // Something new, damage, the end of a file that is cut off, or what is behind it: then no cluster follows.
      const behind = await behindUnknown(reader, element, clusterEnd);
      const next = behind ?? (await findCluster(reader, position + 1));
      end.isLateStart ||= behind === undefined && !hasPackets;
      if (next === undefined) {
        end.isCut = element?.id === id.SIMPLE_BLOCK || element?.id === id.BLOCK_GROUP;
        break;
      }
      position = next;
    } else {
      const { size } = element;
      position = element.bodyStart + size;
      if (element.id === id.TIMESTAMP)
        clusterTicks = uintOf((await reader.peek(element.bodyStart, 8)).subarray(0, size));
      else if (element.id === id.SIMPLE_BLOCK) found = await readSimple(reader, walk, clusterTicks, element);
      else if (element.id === id.BLOCK_GROUP) found = await readGroup(reader, walk, clusterTicks, element);
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

/**
 * Packets without a byte that share a block with others: as much work as elements are, and 256 of them take a block of
 * seven bytes.
 */
const emptyLaces = ({ prefix }: BlockWalk, { packets }: Found): number =>
  packets.length < 2 ? 0 : packets.filter(({ length }) => length === prefix.length).length;

/**
 * Whether an element may stand here and ends inside the file; the size of one that does not is damaged, or the file is
 * cut off.
 */
const isWhole = (reader: BlockReader, element: Element | undefined): element is Element & { readonly size: number } =>
  element?.size !== undefined && isKnown(element.id) && element.bodyStart + element.size <= reader.sizeBytes;

const isKnown = (elementId: number): boolean =>
  elementId === id.TIMESTAMP ||
  elementId === id.SIMPLE_BLOCK ||
  elementId === id.BLOCK_GROUP ||
  id.PASSED_OVER.has(elementId);

/**
 * Where an element that is not known ends (RFC 8794 §6.2: it is passed over by its size); undefined where it is damage.
 * It is one if what stands after it fits, up to the end of its cluster or of the file.
 */
async function behindUnknown(
  reader: BlockReader,
  element: Element | undefined,
  clusterEnd: number | undefined,
): Promise<number | undefined> {
  if (element?.size === undefined || isKnown(element.id)) return undefined;
  const behind = element.bodyStart + element.size;
  const isInside = clusterEnd !== undefined && element.start < clusterEnd;
  const until = Math.min(isInside ? clusterEnd : reader.sizeBytes, reader.sizeBytes);
  let position = behind;
  for (let looked = 0, known = 0; looked < MAX_CONFIRMING; looked++) {
    if (position === until) return behind;
    if (position > until || position - element.start > MAX_UNKNOWN_BYTES) return undefined;
    const next = parseElement(await reader.peek(position, MAX_HEADER_BYTES), 0, position);
    if (next?.id === id.CLUSTER) return behind;
    if (next?.size === undefined) return undefined;
    position = next.bodyStart + next.size;
    if (isWhole(reader, next) && ++known === CONFIRMED) return behind;
  }
  return undefined;
}

async function readSimple(
  reader: BlockReader,
  walk: BlockWalk,
  clusterTicks: number,
  element: Element,
): Promise<Found> {
  return { ...NOTHING, packets: await readBlock(reader, walk, clusterTicks, element) };
}

async function readGroup(reader: BlockReader, walk: BlockWalk, clusterTicks: number, group: Element): Promise<Found> {
  let packets: readonly RawPacket[] = [];
  let paddingNs = 0;
  let elements = 1;
  const end = group.bodyStart + (group.size ?? 0);
  for (let position = group.bodyStart; position < end && elements <= MAX_GROUP_ELEMENTS; elements++) {
    const element = parseElement(await reader.peek(position, MAX_HEADER_BYTES), 0, position);
    if (element?.size === undefined || element.bodyStart + element.size > end) break;
    position = element.bodyStart + element.size;
    if (element.id === id.BLOCK) packets = await readBlock(reader, walk, clusterTicks, element);
    else if (element.id === id.DISCARD_PADDING) {
      const bytes = Math.min(8, element.size);
      paddingNs = intOf((await reader.peek(element.bodyStart, bytes)).subarray(0, bytes));
    }
  }
  return { packets, paddingNs, elements };
}

/** The packets of one block, if it is the track's. */
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

/** The next place that looks like the start of a cluster. */
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
