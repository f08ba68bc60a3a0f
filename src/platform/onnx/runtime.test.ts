import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';

const Memory = WebAssembly.Memory;
let shared = 0;
beforeAll(() => {
  WebAssembly.Memory = class extends Memory {
    constructor(descriptor: WebAssembly.MemoryDescriptor) {
      if (descriptor.shared) shared++;
      if (descriptor.shared) throw new RangeError('this platform has no shared memory');
      super(descriptor);
    }
  };
});
afterAll(() => {
  WebAssembly.Memory = Memory;
});

describe('the ONNX runtime', () => {
  it('runs a model without shared memory, and grows its memory', async () => {
    const { createOnnxRuntime, floatTensor } = await import('./runtime.ts');
    const Refusing = WebAssembly.Memory;
    const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));
    const session = await runtime.createSession(
      readFileSync(new URL('../../../test/fixtures/models/whole-embedder.onnx', import.meta.url)),
    );
    expect([WebAssembly.Memory === Refusing, shared]).toEqual([true, 0]);
    const before = runtime.memoryBytes();
    const frames = 2000;
    const [name] = session.inputNames;
    const run = async () => {
      const outputs = await session.run({
        [name]: floatTensor(new Float32Array(frames * 80).fill(0.1), [1, frames, 80]),
      });
      return Array.from(outputs[session.outputNames[0]].data as Float32Array);
    };
    const first = await run();
    expect(runtime.memoryBytes()).toBeGreaterThan(before);
    expect(first.every(Number.isFinite)).toBe(true);
    expect(await run()).toEqual(first);
  });

  it('differs from the package only in the flag of shared memory', () => {
    const [original, made] = [readFileSync(packaged()), unshared(readFileSync(packaged()))];
    const changed = Array.from(made.keys()).filter((at) => made[at] !== original[at]);
    expect(changed.map((at) => [original[at], made[at]])).toEqual([[3, 1]]);
    expect(() => unshared(made)).toThrow(/not expected/);
    expect(() => unshared(original.subarray(0, 8))).toThrow(/imports no shared memory/);
  });
});
