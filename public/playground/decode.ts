import { cutFrames } from './mp3-cut.ts';

/** Size of the chunks in which a file is decoded. */
const CHUNK_BYTES = 4 * 1024 * 1024;
/** Files that cannot be cut are decoded at once, which takes at least 16 times their size in memory. */
const MAX_WHOLE_BYTES = 96 * 1024 * 1024;

/** Consecutive samples of a recording, mixed to one channel. */
export interface DecodedChunk {
  readonly startSeconds: number;
  readonly samples: Float32Array;
}

/**
 * Decodes a recording in the browser, from start to end. Decodes WAV and MP3 in chunks, so that hours take little
 * memory.
 *
 * @param sampleRateHz 8000 or more
 * @throws if the browser cannot decode the file, or the file is too large to be decoded at once
 */
export async function* decodeChunks(file: Blob, sampleRateHz: number): AsyncGenerator<DecodedChunk> {
  const head = new DataView(await file.slice(0, 64 * 1024).arrayBuffer());
  const wav = wavLayout(head, file.size);
  if (wav) {
    for (let at = wav.dataStart; at < wav.dataEnd; at += wav.chunkBytes) {
      const data = file.slice(at, Math.min(wav.dataEnd, at + wav.chunkBytes));
      const chunk = new Blob([wav.header(data.size), data]);
      const startSeconds = (at - wav.dataStart) / wav.bytesPerSecond;
      yield { startSeconds, samples: await decode(await chunk.arrayBuffer(), sampleRateHz) };
    }
    return;
  }
  const id3Bytes = mp3Start(head);
  if (id3Bytes !== undefined) {
    let startSeconds = 0;
    for (let at = id3Bytes; at < file.size; ) {
      const bytes = new Uint8Array(await file.slice(at, at + CHUNK_BYTES).arrayBuffer());
      const { from, to, seconds } = cutFrames(bytes);
      if (to === from) break;
      yield { startSeconds, samples: await decode(bytes.slice(from, to).buffer, sampleRateHz) };
      startSeconds += seconds;
      at += to;
    }
    return;
  }
  if (file.size > MAX_WHOLE_BYTES) throw new Error('the file is too large to be decoded at once');
  yield { startSeconds: 0, samples: await decode(await file.arrayBuffer(), sampleRateHz) };
}

async function decode(bytes: ArrayBuffer, sampleRateHz: number): Promise<Float32Array> {
  const buffer = await new OfflineAudioContext(1, 1, sampleRateHz).decodeAudioData(bytes);
  const mono = buffer.getChannelData(0);
  for (let channel = 1; channel < buffer.numberOfChannels; channel++) {
    const other = buffer.getChannelData(channel);
    for (let i = 0; i < mono.length; i++) mono[i] += other[i];
  }
  if (buffer.numberOfChannels > 1) for (let i = 0; i < mono.length; i++) mono[i] /= buffer.numberOfChannels;
  return mono;
}

/** Reads the layout of a WAV file; undefined for other files. */
function wavLayout(head: DataView, fileBytes: number) {
  const name = (at: number) => String.fromCharCode(...[0, 1, 2, 3].map((i) => head.getUint8(at + i)));
  if (head.byteLength < 12 || name(0) !== 'RIFF' || name(8) !== 'WAVE') return undefined;
  let format: { readonly start: number; readonly bytes: number } | undefined;
  for (let at = 12; at + 8 <= head.byteLength; ) {
    const [chunk, bytes] = [name(at), head.getUint32(at + 4, true)];
    if (chunk === 'fmt ') format = { start: at, bytes: bytes + 8 };
    if (chunk === 'data' && format && format.start + format.bytes <= head.byteLength) {
      const { start } = format;
      const formatBytes = new Uint8Array(format.bytes);
      formatBytes.set(new Uint8Array(head.buffer, start, format.bytes));
      const bytesPerSecond = head.getUint32(start + 16, true);
      const frameBytes = head.getUint16(start + 20, true);
      if (bytesPerSecond === 0 || frameBytes === 0) return undefined;
      const dataStart = at + 8;
      return {
        dataStart,
        // The header of a file that was written as a stream has a length of 0 or 4 GiB.
        dataEnd: Math.min(fileBytes, bytes === 0 ? fileBytes : dataStart + bytes),
        chunkBytes: Math.ceil(CHUNK_BYTES / frameBytes) * frameBytes,
        bytesPerSecond,
        header: (dataBytes: number) => wavHeader(formatBytes, dataBytes),
      };
    }
    at += 8 + bytes + (bytes % 2);
  }
  return undefined;
}

function wavHeader(format: Uint8Array<ArrayBuffer>, dataBytes: number): Blob {
  const chunk = (name: string, bytes: number): Uint8Array<ArrayBuffer> => {
    const head = new Uint8Array(8);
    head.set([...name].map((letter) => letter.charCodeAt(0)));
    new DataView(head.buffer).setUint32(4, bytes, true);
    return head;
  };
  return new Blob([chunk('RIFF', 4 + format.length + 8 + dataBytes), 'WAVE', format, chunk('data', dataBytes)]);
}

/** Finds the offset of the first frame of an MP3 file; undefined for other files. */
function mp3Start(head: DataView): number | undefined {
  const bytes = new Uint8Array(head.buffer);
  if (bytes.length > 10 && bytes[0] === 0x49 && bytes[1] === 0x44 && bytes[2] === 0x33) {
    return 10 + ((bytes[6] << 21) | (bytes[7] << 14) | (bytes[8] << 7) | bytes[9]);
  }
  return cutFrames(bytes).from === 0 && cutFrames(bytes).to > 0 ? 0 : undefined;
}

/** Encodes samples as a 16-bit WAV file. */
export function wavFile(chunks: readonly Float32Array[], sampleRateHz: number): Blob {
  const samples = chunks.map((chunk) => Int16Array.from(chunk, (value) => Math.max(-1, Math.min(1, value)) * 32_767));
  const format = new DataView(new ArrayBuffer(24));
  for (const [i, letter] of [...'fmt '].entries()) format.setUint8(i, letter.charCodeAt(0));
  format.setUint32(4, 16, true);
  format.setUint16(8, 1, true);
  format.setUint16(10, 1, true);
  format.setUint32(12, sampleRateHz, true);
  format.setUint32(16, 2 * sampleRateHz, true);
  format.setUint16(20, 2, true);
  format.setUint16(22, 16, true);
  const dataBytes = samples.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  return new Blob([wavHeader(new Uint8Array(format.buffer), dataBytes), ...samples], { type: 'audio/wav' });
}
