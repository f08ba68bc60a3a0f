import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import {
  type AudioError,
  type AudioPorts,
  type ByteSource,
  outputSampleCount,
  probeAudio,
  type Result,
  readSamples,
} from '../../src/audio/index.ts';

/** A recording on disk, decoded as it is read. */
export interface AudioFile {
  /** Length at 16 kHz. */
  readonly sampleCount: number;
  /** What a person should know of a file that is not quite as it should be, as a job's output tells it. */
  readonly warning?: string;
  /** 16 kHz mono in blocks of at most a second; a block is a view that the next one may overwrite. */
  blocks(): AsyncGenerator<Float32Array>;
  close(): Promise<void>;
}

/** Opens a recording with the service's own code, without reading it into memory as a whole. */
export async function openAudioFile(path: string, ports: AudioPorts): Promise<Result<AudioFile, AudioError>> {
  const handle = await open(path);
  try {
    const { size } = await handle.stat();
    const source: ByteSource = {
      sizeBytes: size,
      async read(offset, length) {
        const buffer = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
        return buffer.subarray(0, bytesRead);
      },
    };
    const probed = await probeAudio(source, ports.decoder);
    if (!probed.ok) {
      await handle.close();
      return probed;
    }
    const index = probed.value;
    const sampleCount = outputSampleCount(index);
    const blocks = () => readSamples(source, index, ports, { startSample: 0, endSample: sampleCount });
    const { warning } = index;
    return { ok: true, value: { sampleCount, warning, blocks, close: () => handle.close() } };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** A file that lies in memory. */
export function memorySource(bytes: Uint8Array): ByteSource {
  return {
    sizeBytes: bytes.length,
    read: async (offset, length) => bytes.subarray(offset, offset + length),
  };
}

/**
 * Decodes a whole file to 16 kHz mono.
 *
 * @throws Error when it is not a recording that the service reads
 */
export async function decodeFile(path: string, ports: AudioPorts): Promise<Float32Array> {
  const source = memorySource(readFileSync(path));
  const probed = await probeAudio(source, ports.decoder);
  if (!probed.ok) throw new Error(`${path}: ${probed.error.message}`);
  const samples = new Float32Array(outputSampleCount(probed.value));
  let filled = 0;
  for await (const block of readSamples(source, probed.value, ports, { startSample: 0, endSample: samples.length })) {
    samples.set(block, filled);
    filled += block.length;
  }
  return samples;
}
