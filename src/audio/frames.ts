import type { BlockReader } from './block-reader.ts';
import type { Faults } from './container.ts';
import { type FrameSyntax, walkFrames } from './frame-walker.ts';
import type { PacketRun, PacketWalk } from './packets/packet.ts';
import type { PcmLayout } from './pcm.ts';

/** Packets of a run of blocks. */
const BLOCKS_TOGETHER = 64;

/** The frames of `[startByte, endByte)`, all of `frameSamples`, as packets; their places are the entries. */
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
    // Where the walk ended, for what looks at the rest.
    faults.framesEnd = framesEnd;
    yield { packets, skippedBytes };
  }
}

/** Coded blocks of one size after one another; the last may be shorter. */
export interface BlockLayout {
  readonly dataOffset: number;
  readonly dataBytes: number;
  readonly blockBytes: number;
  /** Samples of a block of so many bytes. */
  readonly samplesOf: (bytes: number) => number;
}

/** The blocks from the one at `entry` on. */
export async function* blockPackets(layout: BlockLayout, entry = layout.dataOffset): PacketWalk {
  const { dataOffset, dataBytes, blockBytes, samplesOf } = layout;
  const end = dataOffset + dataBytes;
  for (let offset = entry; offset < end; ) {
    const packets: PacketRun['packets'][number][] = [];
    for (; offset < end && packets.length < BLOCKS_TOGETHER; offset += blockBytes) {
      const length = Math.min(blockBytes, end - offset);
      packets.push({ offset, length, samples: samplesOf(length), entry: offset });
    }
    yield { packets };
  }
}

/**
 * Bytes of a packet of samples, at most: what a converter makes of floats depends on their neighbours, so that packets
 * begin at the same places whoever reads.
 */
const PACKET_BYTES = 1 << 16;

/** The samples of `[dataOffset, dataOffset + dataBytes)` as packets. */
export function pcmBlocks(layout: PcmLayout, dataOffset: number, dataBytes: number): BlockLayout {
  const frameBytes = layout.bytesPerSample * layout.channels;
  const blockBytes = Math.max(1, Math.floor(PACKET_BYTES / frameBytes)) * frameBytes;
  const samplesOf = (bytes: number) => Math.floor(bytes / frameBytes);
  return { dataOffset, dataBytes: samplesOf(dataBytes) * frameBytes, blockBytes, samplesOf };
}

/** What was not quite right with a stream of frames. @param name 'MP3' */
export function frameWarnings(name: string, faults: Faults, isTruncated = faults.isCut === true): string[] {
  return [
    ...(isTruncated ? [`The ${name} file ends before it should; the part that is there was used.`] : []),
    ...(faults.skippedBytes
      ? [`${faults.skippedBytes} bytes inside the ${name} file are damaged and were left out.`]
      : []),
  ];
}
