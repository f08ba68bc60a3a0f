import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';
import { readOnnxMetadata, withExternalWeights } from './model-file.ts';
import { createOnnxRuntime, floatTensor } from './runtime.ts';

const model = (name: string) => readFileSync(new URL(`../../../models/${name}`, import.meta.url));

describe('readOnnxMetadata', () => {
  it('reads the metadata that exporters wrote', () => {
    const segmentation = readOnnxMetadata(model('segmentation-v8.onnx'));
    expect(segmentation.get('receptive_field_shift')).toBe('320');
    expect(segmentation.get('classes')).toBe('none,1,2,3,1+2,1+3,2+3');
    expect(readOnnxMetadata(model('embedder-v6-trunk.onnx')).get('output_dim')).toBe('192');
    expect(readOnnxMetadata(model('segmentation-v8.int8.onnx'))).toEqual(segmentation);
    expect(readOnnxMetadata(model('embedder-v6-head.onnx')).size).toBe(0);
  });

  it('refuses bytes that are no protobuf', () => {
    expect(() => readOnnxMetadata(new TextEncoder().encode('<!doctype html>'))).toThrow(/not an ONNX model/);
    const bytes = model('embedder-v6-head.onnx');
    expect(() => readOnnxMetadata(bytes.subarray(0, bytes.length - 100))).toThrow(/not an ONNX model/);
  });
});

const wholeEmbedder = () => readFileSync(new URL('../../../test/fixtures/models/whole-embedder.onnx', import.meta.url));
const FRAMES = 300;
const BANDS = 80;

/** Output of an embedder for a fixed input. @param maxWholeBytes the weights of larger models are external */
async function embeddingOf(bytes: Uint8Array, maxWholeBytes: number): Promise<number[]> {
  const module = new WebAssembly.Module(unshared(readFileSync(packaged())));
  const session = await createOnnxRuntime(module, maxWholeBytes).createSession(bytes);
  const values = Float32Array.from({ length: FRAMES * BANDS }, (_, at) => Math.sin(at / 7) + Math.cos(at / 301));
  const outputs = await session.run({ [session.inputNames[0]]: floatTensor(values, [1, FRAMES, BANDS]) });
  return Array.from(outputs[session.outputNames[0]].data as Float32Array);
}

describe('withExternalWeights', () => {
  it('keeps everything of the file but the weights in the graph', () => {
    const bytes = wholeEmbedder();
    const { graph, weights } = withExternalWeights(bytes);
    expect(graph.length).toBeLessThan(0.1 * bytes.length);
    expect(weights).toBe(bytes);
    expect(readOnnxMetadata(graph)).toEqual(readOnnxMetadata(bytes));
  });

  it('does not change the output of a model', async () => {
    const bytes = wholeEmbedder();
    const inside = await embeddingOf(bytes, bytes.length);
    const outside = await embeddingOf(bytes, 0);
    expect(outside.length).toBe(192);
    // External weights are not repacked, so that sums run in another order.
    const largest = Math.max(...inside.map(Math.abs));
    const differences = outside.map((value, at) => Math.abs(value - inside[at]));
    expect(Math.max(...differences)).toBeLessThan(1e-4 * largest);
  });

  it('finds the weights in a file that is a view of a larger array', async () => {
    const bytes = wholeEmbedder();
    const larger = new Uint8Array(bytes.length + 33);
    larger.set(bytes, 33);
    expect(await embeddingOf(larger.subarray(33), 0)).toEqual(await embeddingOf(bytes, 0));
  });

  it('refuses a truncated file', () => {
    const bytes = wholeEmbedder();
    expect(() => withExternalWeights(bytes.subarray(0, bytes.length - 100))).toThrow(/not an ONNX model/);
  });
});
