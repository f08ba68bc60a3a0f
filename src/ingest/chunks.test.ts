import { describe, expect, it } from 'vitest';
import { random } from '../../test/helpers/audio.ts';
import { BYTES_PER_SAMPLE, CHUNK_SAMPLES, ChunkBuffer, type ReadChunk, readChunks } from './chunks.ts';

const next = random(3);
/** Two chunks and a short one, of values that 16 bits represent exactly. */
const SAMPLES = Float32Array.from(
  { length: 2 * CHUNK_SAMPLES + 12_345 },
  () => (Math.floor(next() * 65_536) - 32_768) / 32_768,
);

/** The chunks of a recording that is added in blocks of a length. */
function chunksOf(samples: Float32Array, blockSamples: number): Uint8Array[] {
  const buffer = new ChunkBuffer();
  const chunks: Uint8Array[] = [];
  for (let from = 0; from < samples.length; from += blockSamples) {
    const block = samples.subarray(from, from + blockSamples);
    for (let at = 0; at < block.length; ) {
      at += buffer.add(block.subarray(at));
      if (buffer.isFull) chunks.push(buffer.take());
    }
  }
  if (buffer.samples > 0) chunks.push(buffer.take());
  return chunks;
}

const CHUNKS = chunksOf(SAMPLES, 1152);
const readOf =
  (chunks: readonly Uint8Array[], reads: number[][] = []): ReadChunk =>
  async (chunk, offset, length) => {
    reads.push([chunk, offset, length]);
    return chunks[chunk]!.subarray(offset, offset + length);
  };

async function read(startSample: number, endSample: number, readChunk = readOf(CHUNKS)): Promise<Float32Array> {
  const samples: number[] = [];
  for await (const block of readChunks(readChunk, startSample, endSample)) {
    expect(block.length).toBeLessThanOrEqual(16_000);
    for (const sample of block) samples.push(sample);
  }
  return Float32Array.from(samples);
}

describe('ChunkBuffer', () => {
  it('makes the same chunks of fixed length from any block lengths', () => {
    expect(CHUNKS.map((chunk) => chunk.length / BYTES_PER_SAMPLE)).toEqual([CHUNK_SAMPLES, CHUNK_SAMPLES, 12_345]);
    for (const blockSamples of [CHUNK_SAMPLES, 1_000_003, 3 * CHUNK_SAMPLES]) {
      const others = chunksOf(SAMPLES, blockSamples);
      expect(others).toHaveLength(CHUNKS.length);
      for (const [at, chunk] of others.entries()) expect(Buffer.compare(chunk, CHUNKS[at]!)).toBe(0);
    }
  });

  it('clips samples at full scale and rounds them to 16 bits', async () => {
    const values = [1.5, 1, 0.99999, -1, -1.00001, -7, 0.4 / 32_768, 0.6 / 32_768, 1e30, -1e30, Number.NaN];
    const chunks = chunksOf(Float32Array.from(values), values.length);
    const scaled = (await read(0, values.length, readOf(chunks))).map((value) => value * 32_768);
    const [max, min] = [32_767, -32_768];
    expect([...scaled]).toEqual([max, max, max, min, min, min, 0, 1, max, min, 0]);
  });

  it('does not change a chunk while it fills the next one', () => {
    const buffer = new ChunkBuffer();
    buffer.add(Float32Array.of(0.5, 0.25));
    const first = buffer.take();
    buffer.add(Float32Array.of(-0.5));
    expect(first).toEqual(new Uint8Array(Int16Array.of(16_384, 8192).buffer));
    expect(buffer.take()).toEqual(new Uint8Array(Int16Array.of(-16_384).buffer));
  });
});

describe('readChunks', () => {
  it.each([
    [0, SAMPLES.length],
    [0, 1],
    [CHUNK_SAMPLES - 1, CHUNK_SAMPLES + 1],
    [CHUNK_SAMPLES, 2 * CHUNK_SAMPLES],
    [16_001, CHUNK_SAMPLES + 99_999],
    [2 * CHUNK_SAMPLES + 12_344, SAMPLES.length],
    [500, 500],
  ])('returns the samples [%i, %i)', async (startSample, endSample) => {
    const samples = await read(startSample, endSample);
    expect(Buffer.compare(new Uint8Array(samples.buffer), asBytes(SAMPLES.slice(startSample, endSample)))).toBe(0);
  });

  it('reads at most half a chunk at a time', async () => {
    const reads: number[][] = [];
    await read(CHUNK_SAMPLES - 16_000, 2 * CHUNK_SAMPLES + 10, readOf(CHUNKS, reads));
    const half = (CHUNK_SAMPLES / 2) * BYTES_PER_SAMPLE;
    expect(reads).toEqual([
      [0, (CHUNK_SAMPLES - 16_000) * BYTES_PER_SAMPLE, 32_000],
      [1, 0, half],
      [1, half, half],
      [2, 0, 20],
    ]);
  });

  it('throws if a chunk is too short', async () => {
    const short = [CHUNKS[0]!, CHUNKS[1]!.subarray(0, 100), CHUNKS[2]!];
    await expect(read(0, SAMPLES.length, readOf(short))).rejects.toThrow('chunk 1 is shorter than it should be');
    await expect(read(2 * CHUNK_SAMPLES, SAMPLES.length + 1)).rejects.toThrow('chunk 2 is shorter');
  });
});

const asBytes = (samples: Float32Array): Uint8Array =>
  new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
