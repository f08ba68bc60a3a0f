/**
 * workerd has `ArrayBuffer.prototype.transfer` (ES2024), Node 20 does not: without it nothing that is given back (`src/audio/memory.ts`)
 * would be gone in the tests, and none of them could see it used afterwards.
 */
interface WithTransfer {
  transfer?: (this: ArrayBuffer) => ArrayBuffer;
}

(ArrayBuffer.prototype as WithTransfer).transfer ??= function transfer() {
  return structuredClone(this, { transfer: [this] });
};
