import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';
import { packInUse, parseManifest } from './manifest.ts';
import { createOnnxRuntime, floatTensor } from './runtime.ts';

const models = new URL('../../../models/', import.meta.url);
const { segmentation, embedding } = packInUse(
  parseManifest(JSON.parse(readFileSync(new URL('manifest.json', models), 'utf8'))),
);
if (embedding.form !== 'split') throw new Error('the pack in use has no trunk');
const { files, facts, trunkCuts } = embedding;
const trunk = readFileSync(new URL(files.trunk.path, models));
const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));

it('gives the same bytes as the whole model, and pauses between the subgraphs', async () => {
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
    const found = await cut.run(input());
    expect(pauses).toBe(trunkCuts.length);
    expect(found.frames.dims).toEqual(expected.frames.dims);
    expect(found.frames.data).toEqual(expected.frames.data);
  }
});

it('gives the same bytes as the whole segmentation of precision-2', async () => {
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

it('refuses a cut after a tensor that no operator gives', async () => {
  await expect(runtime.createSession(trunk, { after: ['nothing'], pause: async () => {} })).rejects.toThrow(
    '"nothing"',
  );
});
