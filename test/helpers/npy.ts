import { readFileSync } from 'node:fs';

/** An array saved by numpy, in C order. */
export interface NpyArray {
  readonly shape: readonly number[];
  readonly data: Float32Array | Float64Array | Uint8Array | Int8Array | Int32Array;
}

/** Reads a `.npy` file, version 1 or 2, of the number types that the tests need; 64-bit integers become 32-bit ones. */
export function readNpy(path: string): NpyArray {
  const bytes = readFileSync(path);
  if (bytes.toString('latin1', 1, 6) !== 'NUMPY') throw new Error(`${path} is no npy file`);
  const isOld = bytes[6] === 1;
  const headerLength = isOld ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const start = isOld ? 10 : 12;
  const header = bytes.toString('latin1', start, start + headerLength);
  const type = /'descr': '([^']+)'/.exec(header)?.[1];
  const shapeText = /'shape': \(([^)]*)\)/.exec(header)?.[1];
  if (type === undefined || shapeText === undefined || header.includes("'fortran_order': True")) {
    throw new Error(`${path}: header not understood: ${header}`);
  }
  const shape = shapeText
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map(Number);
  // A copy, because the buffer of the file may not be aligned.
  const body = Uint8Array.from(bytes.subarray(start + headerLength));
  return { shape, data: decode(type, body.buffer, path) };
}

function decode(type: string, buffer: ArrayBuffer, path: string): NpyArray['data'] {
  switch (type) {
    case '<f4':
      return new Float32Array(buffer);
    case '<f8':
      return new Float64Array(buffer);
    case '|u1':
      return new Uint8Array(buffer);
    case '|i1':
      return new Int8Array(buffer);
    case '<i8':
      return Int32Array.from(new BigInt64Array(buffer), Number);
    default:
      throw new Error(`${path}: type ${type} is not supported`);
  }
}
