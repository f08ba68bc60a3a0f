import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { grown } from '../audio/memory.ts';

/** Length of a stored chunk. The last one of a recording is shorter. */
const CHUNK_SECONDS = 150;
export const CHUNK_SAMPLES = CHUNK_SECONDS * SAMPLE_RATE_HZ;
/** 16-bit samples, little-endian, mono, 16 kHz. */
export const BYTES_PER_SAMPLE = 2;
const FULL_SCALE = 32768;
/** Initial capacity: many passes may get hardly any audio. */
const INITIAL_SAMPLES = 10 * SAMPLE_RATE_HZ;
/** Samples per read, so that memory holds half a chunk. */
const READ_SAMPLES = CHUNK_SAMPLES / 2;

/** Collects samples in chunks of 16 bits. */
export class ChunkBuffer {
  #bytes: Uint8Array = new Uint8Array(INITIAL_SAMPLES * BYTES_PER_SAMPLE);
  #filled = 0;

  get isFull(): boolean {
    return this.#filled === CHUNK_SAMPLES;
  }

  get samples(): number {
    return this.#filled;
  }

  /** Adds samples, clipped to −1…1, up to the length of a chunk. @returns number of samples added */
  add(samples: Float32Array): number {
    const count = Math.min(samples.length, CHUNK_SAMPLES - this.#filled);
    const at = this.#filled * BYTES_PER_SAMPLE;
    const most = CHUNK_SAMPLES * BYTES_PER_SAMPLE;
    this.#bytes = grown(this.#bytes, at, at + count * BYTES_PER_SAMPLE, most);
    const view = new DataView(this.#bytes.buffer);
    for (let i = 0; i < count; i++) {
      const value = Math.max(-FULL_SCALE, Math.min(FULL_SCALE - 1, Math.round(samples[i] * FULL_SCALE)));
      view.setInt16(at + i * BYTES_PER_SAMPLE, value, true);
    }
    this.#filled += count;
    return count;
  }

  /** Returns the bytes so far and empties the buffer. The caller owns the bytes. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#filled * BYTES_PER_SAMPLE);
    this.#bytes = new Uint8Array(INITIAL_SAMPLES * BYTES_PER_SAMPLE);
    this.#filled = 0;
    return bytes;
  }
}

/** Reads bytes `[offset, offset + length)` of a chunk by its number. */
export type ReadChunk = (chunk: number, offset: number, length: number) => Promise<Uint8Array>;

/**
 * The samples `[startSample, endSample)` of a recording, read from its chunks, in blocks of at most a second. The next
 * block overwrites the previous one.
 */
export async function* readChunks(
  read: ReadChunk,
  startSample: number,
  endSample: number,
): AsyncGenerator<Float32Array> {
  const block = new Float32Array(SAMPLE_RATE_HZ);
  for (let sample = startSample; sample < endSample; ) {
    const chunk = Math.floor(sample / CHUNK_SAMPLES);
    const inChunk = sample - chunk * CHUNK_SAMPLES;
    const count = Math.min(READ_SAMPLES, CHUNK_SAMPLES - inChunk, endSample - sample);
    const bytes = await read(chunk, inChunk * BYTES_PER_SAMPLE, count * BYTES_PER_SAMPLE);
    if (bytes.length !== count * BYTES_PER_SAMPLE) throw new Error(`chunk ${chunk} is shorter than it should be`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < count; at += block.length) {
      const length = Math.min(block.length, count - at);
      for (let i = 0; i < length; i++) block[i] = view.getInt16((at + i) * BYTES_PER_SAMPLE, true) / FULL_SCALE;
      yield block.subarray(0, length);
    }
    sample += count;
  }
}
