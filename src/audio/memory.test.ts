import { expect, it } from 'vitest';
import { concatenated, grown, release } from './memory.ts';

it('skips a buffer that is already detached', () => {
  const array = new Uint8Array(8);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  const transfer = () => {
    throw new TypeError('Cannot perform ArrayBuffer.prototype.transfer on a detached ArrayBuffer');
  };
  Object.assign(array.buffer, { transfer });
  expect(() => release(array)).not.toThrow();
});

it('grows a buffer to twice its length or the needed length, and keeps its beginning', () => {
  const buffer = Float32Array.of(1, 2, 3, 4);
  expect(grown(buffer, 2, 4)).toBe(buffer);
  expect(grown(buffer, 2, 5)).toEqual(Float32Array.of(1, 2, 0, 0, 0, 0, 0, 0));
  expect(grown(buffer, 2, 9)).toHaveLength(9);
  expect(grown(buffer, 4, 5, 6)).toEqual(Float32Array.of(1, 2, 3, 4, 0, 0));
});

it('concatenates parts in an array of the given type', () => {
  expect(concatenated(Int32Array, [[1, 2], Int32Array.of(), Uint8Array.of(3)])).toEqual(Int32Array.of(1, 2, 3));
  expect(concatenated(Float32Array, [])).toEqual(new Float32Array(0));
});
