import type { BlockReader } from './block-reader.ts';
import { MAX_SCAN_SECONDS } from './container.ts';
import { type FrameSyntax, walkFrames } from './frame-walker.ts';
import { findSeekPoint, type SeekTable, SeekTableBuilder } from './seek-table.ts';
import { StretchDecoder, stretchPlan } from './stretches.ts';
import type { PacketDecoder } from './types.ts';

/** Distance of the points of a seek table. */
export const SEEK_SECONDS = 10;

/** Coded frames that all hold the same number of samples. */
export interface FrameTiming {
  readonly sampleRateHz: number;
  readonly frameSamples: number;
  /** Frames that a decoder needs in front before its samples are right. */
  readonly warmUpFrames: number;
  /** Decoded samples in front of the recording. */
  readonly skipSamples: number;
  readonly totalSamples: number;
}

/** Frames from number `fromFrame` on, in order; a view is valid until the next one. */
export type FramesFrom = (fromFrame: number) => AsyncIterable<Uint8Array>;

/** Decodes frames to mono samples `[startSample, totalSamples)`. */
export async function* decodeFrames(
  timing: FrameTiming,
  framesFrom: FramesFrom,
  open: () => PacketDecoder,
  startSample: number,
): AsyncGenerator<Float32Array> {
  const { frameSamples, skipSamples } = timing;
  const plan = stretchPlan(timing.sampleRateHz, frameSamples, timing.warmUpFrames);
  const from = startSample + skipSamples;
  const end = timing.totalSamples + skipSamples;
  const firstWanted = Math.floor(from / frameSamples);
  const decoder = new StretchDecoder(open, plan, firstWanted);
  const out = new Float32Array(frameSamples);
  let frame = decoder.firstFrame;
  try {
    for await (const packet of framesFrom(frame)) {
      const first = frame * frameSamples;
      if (first >= end) return;
      const decoded = decoder.decode(frame++, packet).subarray(0, frameSamples);
      if (first + frameSamples <= from) continue;
      // A damaged frame gives less than it should: its time passes all the same.
      out.fill(0);
      out.set(decoded);
      yield out.subarray(Math.max(0, from - first), Math.min(frameSamples, end - first));
    }
  } finally {
    decoder.close();
  }
}

/** What a walk over all frames of a stream finds. */
export interface FrameScan {
  readonly frames: number;
  readonly skippedBytes: number;
  readonly isTruncated: boolean;
  readonly minFrameBytes: number;
  /** Behind the last frame. */
  readonly framesEnd: number;
  readonly seek: SeekTable;
}

/** Counts the frames of `[startByte, endByte)` and notes places to start from. */
export async function scanFrames(
  reader: BlockReader,
  syntax: FrameSyntax,
  range: { readonly startByte: number; readonly endByte: number },
  { frameSamples, sampleRateHz }: { readonly frameSamples: number; readonly sampleRateHz: number },
): Promise<FrameScan> {
  const seek = new SeekTableBuilder(SEEK_SECONDS * sampleRateHz);
  let frames = 0;
  let skippedBytes = 0;
  let isTruncated = false;
  let minFrameBytes = Number.POSITIVE_INFINITY;
  let framesEnd = range.startByte;
  for await (const run of walkFrames(reader, syntax, range.startByte, range.endByte)) {
    for (let i = 0; i < run.offsets.length; i++) {
      seek.add(run.offsets[i], frames * frameSamples);
      if (run.lengths[i] < minFrameBytes) minFrameBytes = run.lengths[i];
      framesEnd = run.offsets[i] + run.lengths[i];
      frames++;
    }
    skippedBytes += run.skippedBytes;
    isTruncated = run.isTruncated;
    if (frames * frameSamples > MAX_SCAN_SECONDS * sampleRateHz) break;
  }
  return { frames, skippedBytes, isTruncated, minFrameBytes, framesEnd, seek: seek.build() };
}

/** The frames that `scanFrames` counted. */
export function scannedFrames(
  reader: BlockReader,
  syntax: FrameSyntax,
  index: { readonly seek: SeekTable; readonly frameSamples: number; readonly endByte: number },
): FramesFrom {
  return async function* (fromFrame) {
    const point = findSeekPoint(index.seek, fromFrame * index.frameSamples);
    let frame = point.sample / index.frameSamples;
    for await (const run of walkFrames(reader, syntax, point.offset, index.endByte)) {
      for (let i = 0; i < run.offsets.length; i++, frame++) {
        if (frame < fromFrame) continue;
        const packet = await reader.peek(run.offsets[i], run.lengths[i]);
        yield packet.subarray(0, run.lengths[i]);
      }
    }
  };
}

/**
 * What was not quite right with a stream of frames, in sentences; undefined when nothing was.
 *
 * @param more another sentence about it
 */
export function scanWarning(
  name: string,
  scan: { readonly isTruncated: boolean; readonly skippedBytes: number },
  more?: string,
): string | undefined {
  const warnings = [
    ...(scan.isTruncated ? [`The ${name} file ends before it should; the part that is there was used.`] : []),
    ...(scan.skippedBytes > 0
      ? [`${scan.skippedBytes} bytes inside the ${name} file are damaged and were left out.`]
      : []),
    ...(more === undefined ? [] : [more]),
  ];
  return warnings.length > 0 ? warnings.join(' ') : undefined;
}
