import { readFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type AudioError, type AudioPorts, type ByteSource, Recording, type Result } from '../../src/audio/index.ts';
import { bytesSource } from '../../src/platform/r2-objects.ts';

/** A recording on disk, decoded as it is read. */
export interface AudioFile {
  /** 16 kHz mono in blocks of any length; a block is a view that the next one may overwrite. */
  blocks(): AsyncGenerator<Float32Array>;
  /** What a person should know of a file that is not quite as it should be, once the blocks have ended. */
  warning(): string | undefined;
  close(): Promise<void>;
}

const READ_BYTES = 1 << 18;

/** Opens a recording with the service's own code, without reading it into memory as a whole. */
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
 * @throws Error when it is not a recording that the service reads
 */
export async function decodeFile(path: string, ports: AudioPorts): Promise<Float32Array> {
  const opened = await Recording.open(bytesSource(readFileSync(path)), ports);
  if (!opened.ok) throw new Error(`${path}: ${opened.error.message}`);
  const blocks: Float32Array[] = [];
  for await (const block of opened.value.samples()) blocks.push(block.slice());
  const { end } = opened.value;
  if (!end.ok) throw new Error(`${path}: ${end.error.message}`);
  const samples = new Float32Array(end.value.totalSamples);
  let filled = 0;
  for (const block of blocks) {
    samples.set(block, filled);
    filled += block.length;
  }
  return samples;
}
