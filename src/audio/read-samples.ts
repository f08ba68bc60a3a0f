import { BlockReader } from './block-reader.ts';
import { type AudioIndex, containerOf } from './registry.ts';
import { type ByteSource, type DecoderPort, OUTPUT_RATE_HZ, type Resampler, type ResamplerPort } from './types.ts';

/** Longest block yielded, samples at 16 kHz: one second. */
const MAX_BLOCK_SAMPLES = OUTPUT_RATE_HZ;

/** Of long blocks the resampler makes several outputs at once: packets of a codec are too short for that. */
const GATHERED_SAMPLES = 4096;

export interface AudioPorts {
  readonly decoder: DecoderPort;
  readonly resampler: ResamplerPort;
}

/** Samples at 16 kHz, `[startSample, endSample)`. */
export interface SampleRange {
  readonly startSample: number;
  readonly endSample: number;
}

/** Length of the recording in samples at 16 kHz: every output whose moment lies before the end of the recording. */
export function outputSampleCount(index: AudioIndex): number {
  return Math.ceil((index.totalSamples * OUTPUT_RATE_HZ) / index.sampleRateHz);
}

/**
 * Decodes a range to 16 kHz mono: exactly `endSample − startSample` samples, in blocks of at
 * most one second. A block is a view that the next one may overwrite. A sample's value does not depend on where the
 * range starts. Throws RangeError for a range outside the recording; failures of the source are thrown as they come.
 */
export async function* readSamples(
  source: ByteSource,
  index: AudioIndex,
  ports: AudioPorts,
  range: SampleRange,
): AsyncGenerator<Float32Array> {
  const { startSample, endSample } = range;
  if (!(startSample >= 0) || !(endSample >= startSample) || endSample > outputSampleCount(index)) {
    throw new RangeError(`samples ${startSample} to ${endSample} are not all inside the recording`);
  }
  let missing = endSample - startSample;
  for await (const block of outputBlocks(source, index, ports, startSample)) {
    if (missing === 0) return;
    for (let at = 0; at < block.length && missing > 0; ) {
      const length = Math.min(MAX_BLOCK_SAMPLES, block.length - at, missing);
      yield block.subarray(at, at + length);
      at += length;
      missing -= length;
    }
    if (missing === 0) return;
  }
  // Only a file that lost its end after it was probed comes here: the clock is kept.
  const silence = new Float32Array(Math.min(MAX_BLOCK_SAMPLES, missing));
  for (; missing > 0; missing -= Math.min(silence.length, missing)) {
    yield silence.subarray(0, Math.min(silence.length, missing));
  }
}

/** 16 kHz blocks of any length from `startSample` to the end of the recording. */
async function* outputBlocks(
  source: ByteSource,
  index: AudioIndex,
  ports: AudioPorts,
  startSample: number,
): AsyncGenerator<Float32Array> {
  const reader = new BlockReader(source);
  try {
    if (index.sampleRateHz === OUTPUT_RATE_HZ) {
      yield* containerOf(index).readMono(reader, index, ports.decoder, startSample);
    } else {
      yield* resampled(reader, index, ports, startSample);
    }
  } finally {
    reader.close();
  }
}

async function* resampled(
  reader: BlockReader,
  index: AudioIndex,
  ports: AudioPorts,
  startSample: number,
): AsyncGenerator<Float32Array> {
  const rateHz = index.sampleRateHz;
  const position = Math.floor((startSample * rateHz) / OUTPUT_RATE_HZ);
  const firstInput = Math.max(0, position - ports.resampler.contextInputSamples(rateHz));
  const resampler: Resampler = ports.resampler.open(rateHz, firstInput, startSample);
  try {
    const mono = containerOf(index).readMono(reader, index, ports.decoder, firstInput);
    for await (const block of gathered(mono)) yield resampler.push(block);
    yield resampler.flush();
  } finally {
    resampler.close();
  }
}

/** The same samples in blocks of at least `GATHERED_SAMPLES`, but for the last; views that the next one may overwrite. */
async function* gathered(blocks: AsyncGenerator<Float32Array>): AsyncGenerator<Float32Array> {
  let held = new Float32Array(2 * GATHERED_SAMPLES);
  let count = 0;
  for await (const block of blocks) {
    if (count === 0 && block.length >= GATHERED_SAMPLES) {
      yield block;
      continue;
    }
    if (count + block.length > held.length) {
      const larger = new Float32Array(count + block.length);
      larger.set(held.subarray(0, count));
      held = larger;
    }
    held.set(block, count);
    count += block.length;
    if (count < GATHERED_SAMPLES) continue;
    yield held.subarray(0, count);
    count = 0;
  }
  if (count > 0) yield held.subarray(0, count);
}
