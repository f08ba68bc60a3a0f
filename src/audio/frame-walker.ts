import { type BlockReader, skipTags } from './block-reader.ts';
import type { Faults, PacketRun, PacketWalk } from './container.ts';
import type { PcmLayout } from './pcm.ts';

/** Rules that recognise and measure the frames of one stream by their headers. */
export interface FrameSyntax {
  /** Bytes that `frameBytesAt` needs. */
  readonly headerBytes: number;
  /** Bytes, header included, that `frameBytesAt` uses if the file has them; absent if the header is enough. */
  readonly lookAheadBytes?: number;
  /** Longest frame, bytes. */
  readonly maxFrameBytes: number;
  /** First byte of every header, if constant: makes searches faster. */
  readonly syncByte?: number;
  /** Successive headers that verify a position after damage. */
  readonly chain: number;
  /** Length of the frame at `at`, header included; 0 if no header of this stream is there. */
  frameBytesAt(bytes: Uint8Array, at: number): number;
}

interface FrameRun {
  /** Offset and length of each frame, in order. */
  readonly offsets: number[];
  readonly lengths: number[];
  /** Bytes before these frames that belong to no frame and no tag. */
  readonly skippedBytes: number;
  /** Whether the file ends inside the next frame. */
  readonly isTruncated: boolean;
}

/** Bytes that are searched in one step. */
const SEARCH_BYTES = 1 << 16;

/**
 * Walks the frames of `[startByte, endByte)` by their headers, one run per buffered span. If a header is missing, it
 * continues after the tags there, or at the next chain of headers. The walk depends only on the position and the
 * syntax, so a walk from any frame finds the same frames as the walk from the start.
 */
async function* walkFrames(
  reader: BlockReader,
  syntax: FrameSyntax,
  startByte: number,
  endByte: number,
): AsyncGenerator<FrameRun> {
  const { headerBytes } = syntax;
  const aheadBytes = Math.max(headerBytes, syntax.lookAheadBytes ?? 0);
  let position = startByte;
  let skippedBytes = 0;
  while (position + headerBytes <= endByte) {
    const view = clip(await reader.peek(position, aheadBytes), endByte - position);
    const neededBytes = position + view.length < endByte ? aheadBytes : headerBytes;
    const offsets: number[] = [];
    const lengths: number[] = [];
    let at = 0;
    let length = 0;
    let isOutOfSync = false;
    let isTruncated = false;
    while (at + neededBytes <= view.length) {
      length = syntax.frameBytesAt(view, at);
      isOutOfSync = length === 0;
      if (isOutOfSync) break;
      isTruncated = position + at + length > endByte;
      if (isTruncated) break;
      offsets.push(position + at);
      lengths.push(length);
      at += length;
    }
    position += at;
    if (offsets.length > 0 || isTruncated) yield { offsets, lengths, skippedBytes, isTruncated };
    if (isTruncated) return;
    skippedBytes = 0;
    if (!isOutOfSync) continue;
    const afterTags = await skipTags(reader, position, endByte);
    if (afterTags > position && (await isFrameOrEnd(reader, syntax, afterTags, endByte))) {
      position = afterTags;
      continue;
    }
    const found = await resync(reader, syntax, position, endByte);
    if (found === undefined) return;
    skippedBytes = found - position;
    position = found;
  }
}

/** Whether a frame or the end follows, which verifies a tag: bytes inside damage may look like one. */
async function isFrameOrEnd(
  reader: BlockReader,
  syntax: FrameSyntax,
  position: number,
  endByte: number,
): Promise<boolean> {
  if (position + syntax.headerBytes > endByte) return true;
  const aheadBytes = Math.max(syntax.headerBytes, syntax.lookAheadBytes ?? 0);
  return syntax.frameBytesAt(clip(await reader.peek(position, aheadBytes), endByte - position), 0) > 0;
}

/** First position from `from` where a chain of headers begins, or a shorter one that ends exactly with the audio. */
async function resync(
  reader: BlockReader,
  syntax: FrameSyntax,
  from: number,
  endByte: number,
): Promise<number | undefined> {
  const chainBytes =
    (syntax.chain - 1) * syntax.maxFrameBytes + Math.max(syntax.headerBytes, syntax.lookAheadBytes ?? 0);
  for (let position = from; position + syntax.headerBytes <= endByte; ) {
    const view = clip(await reader.peek(position, SEARCH_BYTES), endByte - position);
    const isEnd = position + view.length >= endByte;
    const until = isEnd ? view.length - syntax.headerBytes + 1 : view.length - chainBytes;
    for (let at = nextCandidate(view, 0, syntax); at < until; at = nextCandidate(view, at + 1, syntax)) {
      if (isChain(view, at, syntax, isEnd)) return position + at;
    }
    if (isEnd) return undefined;
    position += until;
  }
  return undefined;
}

function nextCandidate(view: Uint8Array, from: number, { syncByte }: FrameSyntax): number {
  if (syncByte === undefined) return from;
  const at = view.indexOf(syncByte, from);
  return at < 0 ? view.length : at;
}

function isChain(view: Uint8Array, at: number, syntax: FrameSyntax, isEnd: boolean): boolean {
  let end = at;
  for (let count = 0; count < syntax.chain; count++) {
    if (isEnd && count > 0 && end === view.length) return true;
    if (end + syntax.headerBytes > view.length) return false;
    const length = syntax.frameBytesAt(view, end);
    if (length === 0) return false;
    end += length;
  }
  return true;
}

const clip = (view: Uint8Array, length: number): Uint8Array => (view.length > length ? view.subarray(0, length) : view);

/** Packets of one run of blocks. */
const BLOCKS_PER_RUN = 64;

/** The frames of `[startByte, endByte)`, all of `frameSamples`, as packets; their offsets are the entries. */
export async function* framePackets(
  reader: BlockReader,
  syntax: FrameSyntax,
  range: { readonly startByte: number; readonly endByte: number },
  frameSamples: number,
  faults: Faults,
): PacketWalk {
  let framesEnd = range.startByte;
  for await (const { offsets, lengths, skippedBytes, isTruncated } of walkFrames(
    reader,
    syntax,
    range.startByte,
    range.endByte,
  )) {
    if (isTruncated) faults.isCut = true;
    const packets = offsets.map((offset, i) => ({ offset, length: lengths[i], samples: frameSamples, entry: offset }));
    framesEnd = Math.max(framesEnd, (offsets.at(-1) ?? 0) + (lengths.at(-1) ?? 0));
    // End of the walk, for the check of the rest.
    faults.framesEnd = framesEnd;
    yield { packets, skippedBytes };
  }
}

/** Contiguous coded blocks of one size; the last may be shorter. */
interface BlockLayout {
  readonly dataOffset: number;
  readonly dataBytes: number;
  readonly blockBytes: number;
  /** Samples of a block of `bytes` bytes. */
  readonly samplesOf: (bytes: number) => number;
}

/** The blocks from the one at `entry`. */
export async function* blockPackets(layout: BlockLayout, entry = layout.dataOffset): PacketWalk {
  const { dataOffset, dataBytes, blockBytes, samplesOf } = layout;
  const end = dataOffset + dataBytes;
  for (let offset = entry; offset < end; ) {
    const packets: PacketRun['packets'][number][] = [];
    for (; offset < end && packets.length < BLOCKS_PER_RUN; offset += blockBytes) {
      const length = Math.min(blockBytes, end - offset);
      packets.push({ offset, length, samples: samplesOf(length), entry: offset });
    }
    yield { packets };
  }
}

/**
 * Maximum size of a packet of samples. The conversion of floats depends on the packet, so packets begin at the same
 * offsets for every reader.
 */
const PACKET_BYTES = 1 << 16;

/** The samples of `[dataOffset, dataOffset + dataBytes)` as packets. */
export function pcmBlocks(layout: PcmLayout, dataOffset: number, dataBytes: number): BlockLayout {
  const frameBytes = layout.bytesPerSample * layout.channels;
  const blockBytes = Math.max(1, Math.floor(PACKET_BYTES / frameBytes)) * frameBytes;
  const samplesOf = (bytes: number) => Math.floor(bytes / frameBytes);
  return { dataOffset, dataBytes: samplesOf(dataBytes) * frameBytes, blockBytes, samplesOf };
}

/** Warnings about a stream of frames. @param name 'MP3' */
export function frameWarnings(name: string, faults: Faults, isTruncated = faults.isCut === true): string[] {
  return [
    ...(isTruncated ? [`The ${name} file is incomplete; the available part was used.`] : []),
    ...(faults.skippedBytes
      ? [`${faults.skippedBytes} bytes inside the ${name} file are damaged and were left out.`]
      : []),
  ];
}

/**
 * Packets of QuickTime's IMA ADPCM ('ima4') in AIFF-C and Core Audio files. A packet's header has the upper nine bits
 * of the predictor; the lower seven come from the previous packet.
 */
const PACKET_SAMPLES = 64;
const PACKET_BYTES_A_CHANNEL = 34;

/** Blocks of ima4; a truncated packet has no samples. */
export function ima4Blocks(channels: number, dataOffset: number, dataBytes: number): BlockLayout {
  const blockBytes = PACKET_BYTES_A_CHANNEL * channels;
  const samplesOf = (bytes: number) => Math.floor(bytes / blockBytes) * PACKET_SAMPLES;
  return { dataOffset, dataBytes: Math.floor(dataBytes / blockBytes) * blockBytes, blockBytes, samplesOf };
}
