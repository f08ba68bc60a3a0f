import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';
import { packInUse, parseManifest } from './manifest.ts';
import { cutModel, readOnnxMetadata, withExternalWeights } from './model-file.ts';
import { createOnnxRuntime, floatTensor } from './runtime.ts';

const model = (name: string) => readFileSync(new URL(`../../../models/${name}`, import.meta.url));

describe('readOnnxMetadata', () => {
  it('reads the metadata that exporters wrote', () => {
    const segmentation = readOnnxMetadata(model('segmentation-v8.onnx'));
    expect(segmentation.get('receptive_field_shift')).toBe('320');
    expect(segmentation.get('classes')).toBe('none,1,2,3,1+2,1+3,2+3');
    expect(readOnnxMetadata(model('embedder-v5-trunk.int8.onnx')).get('output_dim')).toBe('192');
    expect(readOnnxMetadata(model('segmentation-v8.int8.onnx'))).toEqual(segmentation);
    const { window_size, ...shared } = Object.fromEntries(segmentation);
    expect(window_size).toBe('160000');
    expect(Object.fromEntries(readOnnxMetadata(model('segmentation-v8-network.int8.onnx')))).toEqual(shared);
    expect(readOnnxMetadata(model('embedder-v5-head.onnx')).size).toBe(0);
  });

  it('refuses bytes that are no protobuf', () => {
    expect(() => readOnnxMetadata(new TextEncoder().encode('<!doctype html>'))).toThrow(/not an ONNX model/);
    const bytes = model('embedder-v5-head.onnx');
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

const models = new URL('../../../models/', import.meta.url);
const { segmentation, embedding } = packInUse(
  parseManifest(JSON.parse(readFileSync(new URL('manifest.json', models), 'utf8'))),
);
if (embedding.form !== 'split') throw new Error('the pack in use has no split embedder');
const { files, facts, trunkCuts } = embedding;
const trunk = readFileSync(new URL(files.trunk.path, models));
const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));

it('a cut model gives the same bytes as the whole model, with pauses between subgraphs', async () => {
  let pauses = 0;
  const pause = async () => {
    pauses++;
  };
  const whole = await runtime.createSession(trunk);
  const cut = await runtime.createSession(trunk, { after: trunkCuts, pause });
  expect([cut.inputNames, cut.outputNames]).toEqual([whole.inputNames, whole.outputNames]);
  for (const frames of [998, 333, 21]) {
    const feats = Float32Array.from(
      { length: frames * facts.melBands },
      (_, i) => 3 * Math.sin(i / 7) + Math.cos(i / 301),
    );
    const input = () => ({ feats: floatTensor(feats.slice(), [1, frames, facts.melBands]) });
    const expected = await whole.run(input());
    pauses = 0;
    const actual = await cut.run(input());
    expect(pauses).toBe(trunkCuts.length);
    expect(actual.frames.dims).toEqual(expected.frames.dims);
    expect(actual.frames.data).toEqual(expected.frames.data);
  }
});

it('the cut segmentation of precision-2 gives the same bytes as the whole one', async () => {
  if (segmentation.form !== 'whole') throw new Error('the segmentation in use takes no samples');
  const model = readFileSync(new URL(segmentation.files.model.path, models));
  const whole = await runtime.createSession(model);
  const cut = await runtime.createSession(model, { after: segmentation.cuts, pause: async () => {} });
  for (const count of [160_000, 41_003]) {
    const samples = Float32Array.from({ length: count }, (_, i) => Math.sin(i / 9) * Math.sin(i / 4_001));
    const input = () => ({ x: floatTensor(samples.slice(), [1, 1, count]) });
    expect((await cut.run(input())).y.data).toEqual((await whole.run(input())).y.data);
  }
});

it('runs of two callers interleave without mixing their tensors', async () => {
  const cut = await runtime.createSession(trunk, {
    after: trunkCuts,
    pause: () => new Promise((wake) => setTimeout(wake, 0)),
  });
  const run = async (factor: number) => {
    const feats = Float32Array.from({ length: 200 * facts.melBands }, (_, i) => factor * Math.sin(i / 9));
    return (await cut.run({ feats: floatTensor(feats, [1, 200, facts.melBands]) })).frames.data;
  };
  const alone = [await run(1), await run(2)];
  expect(await Promise.all([run(1), run(2)])).toEqual(alone);
});

it('refuses a cut after a tensor that no operator outputs', async () => {
  await expect(runtime.createSession(trunk, { after: ['nothing'], pause: async () => {} })).rejects.toThrow(
    '"nothing"',
  );
});

it('refuses a cut at a tensor of an unknown element type', () => {
  const [, second] = cutModel(trunk, trunkCuts);
  expect(() => second(() => 'float16')).toThrow('float16');
});
