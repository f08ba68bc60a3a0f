import { ascii, be16, be32, be64, bef64, extended80 } from './big-endian.ts';

/** Writers of AIFF and Core Audio files for tests, byte by byte. */

export interface AiffOptions {
  readonly channels?: number;
  readonly bits?: number;
  readonly rateHz?: number;
  /** Makes an AIFF-C file. */
  readonly type?: string;
  /** Size of the sound chunk in the header; the true size by default. */
  readonly declaredBytes?: number;
  readonly isSoundFirst?: boolean;
  readonly skippedBytes?: number;
  readonly extra?: readonly number[];
}

const chunk = (name: string, body: readonly number[], size = body.length): number[] => [
  ...ascii(name),
  ...be32(size),
  ...body,
  ...(body.length % 2 ? [0] : []),
];

export function aiffFile(options: AiffOptions, data: ArrayLike<number>): Uint8Array {
  const { channels = 1, bits = 16, rateHz = 16000, type, skippedBytes = 0, extra = [] } = options;
  const name = type === undefined ? [] : [...ascii(type), 4, ...ascii('name'), 0];
  const common = chunk('COMM', [...be16(channels), ...be32(0), ...be16(bits), ...extended80(rateHz), ...name]);
  const body = [...be32(skippedBytes), ...be32(0), ...Array(skippedBytes).fill(9), ...Array.from(data)];
  const sound = chunk('SSND', body, options.declaredBytes ?? body.length);
  const chunks = options.isSoundFirst ? [...extra, ...sound, ...common] : [...common, ...extra, ...sound];
  return Uint8Array.from([
    ...ascii('FORM'),
    ...be32(4 + chunks.length),
    ...ascii(type === undefined ? 'AIFF' : 'AIFC'),
    ...chunks,
  ]);
}

export interface CafOptions {
  readonly rateHz?: number;
  readonly formatId?: string;
  readonly flags?: number;
  readonly bytesPerPacket?: number;
  readonly framesPerPacket?: number;
  readonly channels?: number;
  readonly cookie?: ArrayLike<number>;
  readonly packets?: {
    readonly lengths: readonly number[];
    readonly validFrames: number;
    readonly primingFrames?: number;
  };
  /** −1: unknown. */
  readonly declaredBytes?: number;
  readonly isTableLast?: boolean;
}

/** Seven bits a byte, the highest first. */
function packedLength(length: number): number[] {
  const bytes = [length & 0x7f];
  for (let rest = length >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

const chunk64 = (name: string, body: ArrayLike<number>, size = body.length): number[] => [
  ...ascii(name),
  ...(size < 0 ? Array(8).fill(0xff) : be64(size)),
  ...Array.from(body),
];

export function cafFile(options: CafOptions, data: ArrayLike<number>): Uint8Array {
  const {
    rateHz = 16000,
    formatId = 'lpcm',
    flags = 0,
    bytesPerPacket = 2,
    framesPerPacket = 1,
    channels = 1,
  } = options;
  const description = chunk64('desc', [
    ...bef64(rateHz),
    ...ascii(formatId),
    ...be32(flags),
    ...be32(bytesPerPacket),
    ...be32(framesPerPacket),
    ...be32(channels),
    ...be32(16),
  ]);
  const cookie = options.cookie ? chunk64('kuki', options.cookie) : [];
  const { packets } = options;
  const table = packets
    ? chunk64('pakt', [
        ...be64(packets.lengths.length),
        ...be64(packets.validFrames),
        ...be32(packets.primingFrames ?? 0),
        ...be32(0),
        ...packets.lengths.flatMap(packedLength),
      ])
    : [];
  const body = [0, 0, 0, 0, ...Array.from(data)];
  const sound = chunk64('data', body, options.declaredBytes ?? body.length);
  const rest = options.isTableLast ? [...cookie, ...sound, ...table] : [...cookie, ...table, ...sound];
  return Uint8Array.from([...ascii('caff'), 0, 1, 0, 0, ...description, ...rest]);
}
