// Makes ONNX Runtime's module use ordinary memory.  The package contains only a build for threads, which imports shared
// memory. Workers have no threads, and their platform does not promise shared memory. Atomic instructions also work on
// ordinary memory (WebAssembly threads proposal, "Atomic Memory Accesses"), except waits, which a single thread never
// reaches. So this script changes one byte, the flag in the limits of the imported memory. wrangler runs it before it
// bundles a Worker with models (`[build]` in its wrangler file).

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const IMPORT_SECTION = 2;
const KIND = { function: 0, table: 1, memory: 2, global: 3, tag: 4 };
/** Bits of limits: there is a maximum; the memory is shared. */
const [HAS_MAXIMUM, IS_SHARED] = [1, 2];

/**
 * @param {Uint8Array} module
 * @returns {Uint8Array} a copy with ordinary memory in place of shared memory
 * @throws if the module imports no shared memory
 */
export function unshared(module) {
  const bytes = Uint8Array.from(module);
  let at = 8;
  const unsigned = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  };
  const skipName = () => {
    const length = unsigned();
    at += length;
  };
  while (at < bytes.length) {
    const id = bytes[at++];
    const length = unsigned();
    if (id !== IMPORT_SECTION) {
      at += length;
      continue;
    }
    for (let left = unsigned(); left > 0; left--) {
      skipName();
      skipName();
      const kind = bytes[at++];
      if (kind === KIND.function) unsigned();
      else if (kind === KIND.global) at += 2;
      else if (kind === KIND.memory && bytes[at] === (HAS_MAXIMUM | IS_SHARED)) {
        bytes[at] = HAS_MAXIMUM;
        return bytes;
      } else throw new Error(`an import of kind ${kind} in the module of onnxruntime-web is not expected`);
    }
  }
  throw new Error('the module of onnxruntime-web imports no shared memory');
}

/** Path of the npm package's module. */
export const packaged = () => createRequire(import.meta.url).resolve('onnxruntime-web/ort-wasm-simd-threaded.wasm');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '.wrangler', 'onnxruntime', 'ort.wasm');
  const made = unshared(readFileSync(packaged()));
  mkdirSync(dirname(target), { recursive: true });
  if (!existsSync(target) || !readFileSync(target).equals(made)) {
    // Replaced atomically, because another build may be reading it.
    const scratch = `${target}.${process.pid}.tmp`;
    writeFileSync(scratch, made);
    renameSync(scratch, target);
  }
}
