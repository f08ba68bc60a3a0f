import { expect, it } from 'vitest';
import { release } from './memory.ts';

it('leaves alone what was given back before: it is closed twice when a read fails', () => {
  const array = new Uint8Array(8);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  const transfer = () => {
    throw new TypeError('Cannot perform ArrayBuffer.prototype.transfer on a detached ArrayBuffer');
  };
  Object.assign(array.buffer, { transfer });
  expect(() => release(array)).not.toThrow();
});
