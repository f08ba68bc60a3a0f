/** Writers of WAV files for tests, byte by byte. */

export interface WavOptions {
  readonly sampleRateHz: number;
  readonly channels: number;
  /** 1 PCM, 3 float, 6 A-law, 7 µ-law. */
  readonly tag: number;
  readonly bits: number;
  readonly magic?: 'RIFF' | 'RF64' | 'BW64' | 'RIFX';
  readonly isExtensible?: boolean;
  /** Size of the data chunk in the header; the true size by default. */
  readonly declaredBytes?: number;
  /** Chunks between format and data. */
  readonly extra?: readonly (readonly [string, Uint8Array])[];
  readonly blockAlign?: number;
  /** Chunks after the data. */
  readonly tail?: Uint8Array;
}

const GUID_TAIL = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

function u32(value: number): number[] {
  return [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, (value >>> 24) & 255];
}
const u16 = (value: number) => [value & 255, (value >>> 8) & 255];
const text = (value: string) => [...value].map((c) => c.charCodeAt(0));
const chunk = (name: string, body: ArrayLike<number>) => {
  const bytes = Array.from(body);
  return [...text(name), ...u32(bytes.length), ...bytes, ...(bytes.length % 2 ? [0] : [])];
};

export function wavHeader(options: WavOptions, dataBytes: number): Uint8Array {
  const { sampleRateHz, channels, tag, bits } = options;
  const blockAlign = options.blockAlign ?? channels * Math.ceil(bits / 8);
  const magic = options.magic ?? 'RIFF';
  const is64 = magic === 'RF64' || magic === 'BW64';
  const format = [
    ...u16(options.isExtensible ? 0xfffe : tag),
    ...u16(channels),
    ...u32(sampleRateHz),
    ...u32(sampleRateHz * blockAlign),
    ...u16(blockAlign),
    ...u16(bits),
    ...(options.isExtensible ? [...u16(22), ...u16(bits), ...u32(0), ...u16(tag), ...GUID_TAIL] : []),
  ];
  const ds64 = is64
    ? chunk('ds64', [...u32(0), ...u32(0), ...u32(dataBytes), ...u32(0), ...u32(0), ...u32(0), ...u32(0)])
    : [];
  const declared = options.declaredBytes ?? (is64 ? 0xffffffff : dataBytes);
  const body = [
    ...text('WAVE'),
    ...ds64,
    ...chunk('fmt ', format),
    ...(options.extra ?? []).flatMap(([name, bytes]) => chunk(name, bytes)),
    ...text('data'),
    ...u32(declared),
  ];
  return new Uint8Array([...text(magic), ...u32(is64 ? 0xffffffff : body.length + dataBytes), ...body]);
}

export function wavFile(options: WavOptions, data: Uint8Array): Uint8Array {
  const padding = data.length % 2 ? 1 : 0;
  return new Uint8Array(
    Buffer.concat([wavHeader(options, data.length), data, new Uint8Array(padding), options.tail ?? new Uint8Array(0)]),
  );
}

/** 16-bit samples of a signal in −1…1. */
export function pcm16(signal: ArrayLike<number>): Uint8Array {
  const samples = Int16Array.from(signal, (value) => Math.max(-32768, Math.min(32767, Math.round(value * 32768))));
  return new Uint8Array(samples.buffer);
}

export const wav16 = (signal: ArrayLike<number>, sampleRateHz: number, channels = 1): Uint8Array =>
  wavFile({ sampleRateHz, channels, tag: 1, bits: 16 }, pcm16(signal));
