import { crc8, crc16 } from '../../src/audio/crc.ts';

/** A FLAC writer for tests: verbatim subframes, 16 bits, 16 kHz. The files are valid and decode bit for bit. */
export interface FlacOptions {
  readonly channels?: number;
  readonly blockSamples?: number;
  /** Number in the first header: of the frame, or of the sample if the block size varies. */
  readonly firstNumber?: number;
  /** Block sizes used in rotation instead of `blockSamples`. */
  readonly blockSizes?: readonly number[];
  /** Values of STREAMINFO; the true ones by default. */
  readonly declaredSamples?: number;
}

const RATE_HZ = 16000;

function codedNumber(value: number): number[] {
  if (value < 0x80) return [value];
  const rest: number[] = [];
  let left = value;
  // Each further byte has six bits; the first byte has one bit less for each further byte.
  while (left >= 2 ** (6 - rest.length)) {
    rest.unshift(0x80 | (left % 64));
    left = Math.floor(left / 64);
  }
  const length = rest.length + 1;
  return [((0xff << (8 - length)) & 0xff) | left, ...rest];
}

function frame(samples: Int16Array, channels: number, number: number, isVariable: boolean): Uint8Array {
  const count = samples.length / channels;
  const header = [0xff, isVariable ? 0xf9 : 0xf8, 0x75, ((channels - 1) << 4) | 0x08, ...codedNumber(number)];
  header.push((count - 1) >> 8, (count - 1) & 255);
  const bytes = [...header, crc8(Uint8Array.from(header), 0, header.length)];
  for (let c = 0; c < channels; c++) {
    bytes.push(0x02);
    for (let i = 0; i < count; i++) bytes.push((samples[i * channels + c] >> 8) & 255, samples[i * channels + c] & 255);
  }
  const crc = crc16(Uint8Array.from(bytes));
  return Uint8Array.from([...bytes, crc >> 8, crc & 255]);
}

/** The frames of a file, one by one. @param samples interleaved */
export function flacFrames(samples: Int16Array, options: FlacOptions = {}): Uint8Array[] {
  const { channels = 1, blockSamples = 1024, firstNumber = 0, blockSizes } = options;
  const frames: Uint8Array[] = [];
  for (let at = 0, i = 0; at * channels < samples.length; i++) {
    const size = blockSizes ? blockSizes[i % blockSizes.length] : blockSamples;
    const number = firstNumber + (blockSizes ? at : i);
    frames.push(
      frame(samples.subarray(at * channels, (at + size) * channels), channels, number, blockSizes !== undefined),
    );
    at += size;
  }
  return frames;
}

export function flacHeader(totalSamples: number, options: FlacOptions = {}): Uint8Array {
  const { channels = 1, blockSamples = 1024, blockSizes } = options;
  const longest = blockSizes ? Math.max(...blockSizes) : blockSamples;
  const shortest = blockSizes ? Math.max(16, Math.min(...blockSizes)) : blockSamples;
  const total = options.declaredSamples ?? totalSamples;
  const info = [shortest >> 8, shortest & 255, longest >> 8, longest & 255, 0, 0, 0, 0, 0, 0];
  info.push(RATE_HZ >> 12, (RATE_HZ >> 4) & 255, ((RATE_HZ & 15) << 4) | ((channels - 1) << 1), 0xf0);
  info.push((total >>> 24) & 255, (total >>> 16) & 255, (total >>> 8) & 255, total & 255);
  return Uint8Array.from([0x66, 0x4c, 0x61, 0x43, 0x80, 0, 0, 34, ...info, ...new Array<number>(16).fill(0)]);
}

export function flacFile(samples: Int16Array, options: FlacOptions = {}): Uint8Array {
  const total = samples.length / (options.channels ?? 1);
  return new Uint8Array(Buffer.concat([flacHeader(total, options), ...flacFrames(samples, options)]));
}
