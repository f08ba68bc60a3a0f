import { scheduler } from 'node:timers/promises';

/*
 * Globals of workerd that Node or some of its versions lack. Without `ArrayBuffer.prototype.transfer` (ES2024, not in
 * Node 20), `src/audio/memory.ts` would not detach released buffers, and no test would detect that one is used again.
 */
interface WithTransfer {
  transfer?: (this: ArrayBuffer) => ArrayBuffer;
}

(ArrayBuffer.prototype as WithTransfer).transfer ??= function transfer() {
  return structuredClone(this, { transfer: [this] });
};

Object.assign(globalThis, { scheduler });
