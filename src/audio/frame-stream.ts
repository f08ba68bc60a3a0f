import type { BlockReader } from './block-reader.ts';
import { MAX_SCAN_SECONDS, MONO_BLOCK_SAMPLES } from './container.ts';
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

/** Decoded samples given on together, at least a frame: what follows has less to do for each (a step of every stage, and the resampler's rows). */
const BLOCK_SAMPLES = 8192;

/** Frames given on together. Waiting for each would take longer than to find it; the views of all of a buffered minute would be in memory for as long as it takes to analyse it. */
export const FRAMES_TOGETHER = 64;

/** Frames from number `fromFrame` on, in order, some of them together. Views are valid until the next ones. */
export type FramesFrom = (fromFrame: number) => AsyncIterable<readonly Uint8Array[]>;

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
  const block = new Float32Array(Math.max(1, Math.floor(BLOCK_SAMPLES / frameSamples)) * frameSamples);
  let frame = decoder.firstFrame;
  /** Number of the first sample of the block, and how many are in it. */
  let begin = firstWanted * frameSamples;
  let filled = 0;
  const wanted = () => block.subarray(Math.max(0, from - begin), Math.min(filled, end - begin));
  try {
    reading: for await (const packets of framesFrom(frame)) {
      for (const packet of packets) {
        const first = frame * frameSamples;
        if (first >= end) break reading;
        const samples = decoder.decode(frame++, packet);
        if (first < begin) continue;
        const decoded = samples.length > frameSamples ? samples.subarray(0, frameSamples) : samples;
        block.set(decoded, filled);
        // A damaged frame gives less than it should: its time passes all the same.
        if (decoded.length < frameSamples) block.fill(0, filled + decoded.length, filled + frameSamples);
        filled += frameSamples;
        if (filled < block.length) continue;
        yield* bounded(wanted());
        begin += filled;
        filled = 0;
      }
    }
    if (filled > 0) yield* bounded(wanted());
  } finally {
    decoder.close();
  }
}

/** A block of ADPCM may hold more than may be given on at once. */
function* bounded(block: Float32Array): Generator<Float32Array> {
  for (let at = 0; at < block.length; at += MONO_BLOCK_SAMPLES) yield block.subarray(at, at + MONO_BLOCK_SAMPLES);
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
      let held: Uint8Array[] = [];
      for (let i = 0; i < run.offsets.length; i++, frame++) {
        if (frame < fromFrame) continue;
        const packet = reader.held(run.offsets[i], run.lengths[i]);
        if (packet) {
          held.push(packet);
          if (held.length < FRAMES_TOGETHER) continue;
          yield held;
          held = [];
          continue;
        }
        // The first one of those that are read, or one across two blocks: what is held ends with the next reading.
        if (held.length > 0) yield held;
        held = [];
        yield [(await reader.peek(run.offsets[i], run.lengths[i])).subarray(0, run.lengths[i])];
      }
      if (held.length > 0) yield held;
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
