import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';
import { withExternalWeights } from './external-weights.ts';
import { readOnnxMetadata } from './metadata.ts';
import { createOnnxRuntime, floatTensor } from './runtime.ts';

const wholeEmbedder = () => readFileSync(new URL('../../../test/fixtures/models/whole-embedder.onnx', import.meta.url));
const FRAMES = 300;
const BANDS = 80;

/** Output of an embedder on a fixed input. @param maxWholeBytes larger models have their weights outside */
async function embeddingOf(bytes: Uint8Array, maxWholeBytes: number): Promise<number[]> {
  const module = new WebAssembly.Module(unshared(readFileSync(packaged())));
  const session = await createOnnxRuntime(module, maxWholeBytes).createSession(bytes);
  const values = Float32Array.from({ length: FRAMES * BANDS }, (_, at) => Math.sin(at / 7) + Math.cos(at / 301));
  const outputs = await session.run({ [session.inputNames[0]]: floatTensor(values, [1, FRAMES, BANDS]) });
  return Array.from(outputs[session.outputNames[0]].data as Float32Array);
}

describe('withExternalWeights', () => {
  it('leaves a graph without weights, all else of the file in it', () => {
    const bytes = wholeEmbedder();
    const { graph, weights } = withExternalWeights(bytes);
    expect(graph.length).toBeLessThan(0.1 * bytes.length);
    expect(weights).toBe(bytes);
    expect(readOnnxMetadata(graph)).toEqual(readOnnxMetadata(bytes));
  });

  it('changes nothing of what a model gives', async () => {
    const bytes = wholeEmbedder();
    const inside = await embeddingOf(bytes, bytes.length);
    const outside = await embeddingOf(bytes, 0);
    expect(outside.length).toBe(192);
    // Weights that are not put into another order are summed up in another one.
    const largest = Math.max(...inside.map(Math.abs));
    const apart = outside.map((value, at) => Math.abs(value - inside[at]));
    expect(Math.max(...apart)).toBeLessThan(1e-4 * largest);
  });

  it('finds the places in a file that is a view of a larger array', async () => {
    const bytes = wholeEmbedder();
    const larger = new Uint8Array(bytes.length + 33);
    larger.set(bytes, 33);
    expect(await embeddingOf(larger.subarray(33), 0)).toEqual(await embeddingOf(bytes, 0));
  });

  it('refuses a file that is cut off', () => {
    const bytes = wholeEmbedder();
    expect(() => withExternalWeights(bytes.subarray(0, bytes.length - 100))).toThrow(/not an ONNX model/);
  });
});
