import { readFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { AudioError, ByteSource, Result } from '../../src/audio/audio-ports.ts';
import { type AudioPorts, Recording } from '../../src/audio/recording.ts';
import { bytesSource } from '../../src/platform/r2-objects.ts';

/** A recording on disk, decoded while it is read. */
export interface AudioFile {
  /** Yields 16 kHz mono in blocks of any length. Each block may overwrite the previous one. */
  blocks(): AsyncGenerator<Float32Array>;
  /** Returns a warning about a faulty file, after the end of the blocks. */
  warning(): string | undefined;
  close(): Promise<void>;
}

const READ_BYTES = 1 << 18;

/** Opens a recording with the service's decoder, without reading the whole file into memory. */
export async function openAudioFile(path: string, ports: AudioPorts): Promise<Result<AudioFile, AudioError>> {
  const handle = await open(path);
  try {
    const opened = await Recording.open(await fileSource(handle), ports);
    if (!opened.ok) {
      await handle.close();
      return opened;
    }
    const recording = opened.value;
    return {
      ok: true,
      value: {
        blocks: () => recording.samples(),
        warning: () => (recording.end.ok ? recording.end.value.warning : recording.end.error.message),
        close: () => {
          recording.close();
          return handle.close();
        },
      },
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function fileSource(handle: FileHandle): Promise<ByteSource> {
  const { size } = await handle.stat();
  const read = async (offset: number, length: number): Promise<Uint8Array> => {
    const buffer = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
    return buffer.subarray(0, bytesRead);
  };
  return {
    sizeBytes: size,
    canSeek: true,
    read,
    async open(offset) {
      let at = offset;
      return {
        async read() {
          const chunk = await read(at, READ_BYTES);
          at += chunk.length;
          return chunk.length > 0 ? chunk : undefined;
        },
        close() {},
      };
    },
  };
}

/**
 * Decodes a whole file to 16 kHz mono.
 *
 * @throws Error for a file that the service cannot decode
 */
export async function decodeFile(path: string, ports: AudioPorts): Promise<Float32Array> {
  const opened = await Recording.open(bytesSource(readFileSync(path)), ports);
  if (!opened.ok) throw new Error(`${path}: ${opened.error.message}`);
  const blocks: Float32Array[] = [];
  for await (const block of opened.value.samples()) blocks.push(block.slice());
  const { end } = opened.value;
  if (!end.ok) throw new Error(`${path}: ${end.error.message}`);
  const samples = new Float32Array(end.value.totalSamples);
  let position = 0;
  for (const block of blocks) {
    samples.set(block, position);
    position += block.length;
  }
  return samples;
}
