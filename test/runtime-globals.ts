import { scheduler } from 'node:timers/promises';

/*
 * What workerd has and Node does not, or not all versions of it: without `ArrayBuffer.prototype.transfer` (ES2024, not
 * in Node 20) nothing that is given back (`src/audio/memory.ts`) would be gone in the tests, and none of them could see
 * it used afterwards.
 */
interface WithTransfer {
  transfer?: (this: ArrayBuffer) => ArrayBuffer;
}

(ArrayBuffer.prototype as WithTransfer).transfer ??= function transfer() {
  return structuredClone(this, { transfer: [this] });
};

Object.assign(globalThis, { scheduler });
