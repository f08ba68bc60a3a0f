import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { nameOfModels } from './models-in-use.ts';
import { parseManifest } from './onnx/manifest.ts';

it('gives different names to packs that differ in a single file or setting', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../models/manifest.json', import.meta.url), 'utf8'));
  const { packs } = parseManifest(manifest);
  const own = packs.get('default')!;
  const others = [...packs.values()].flatMap((pack) => [
    { ...pack, segmentation: own.segmentation },
    { ...pack, embedding: own.embedding },
    pack,
  ]);
  const names = others.map(nameOfModels);
  expect(names).toEqual(names.map(() => expect.stringMatching(/^([0-9a-f]{8}){3,5}$/)));
  expect(new Set(names).size).toBe(4);
  const { embedding } = own;
  if (embedding.form !== 'kernel') throw new Error('the default pack has no embedder in two halves');
  const head = { ...embedding.files.head, sha256: 'f'.repeat(64) };
  const another = { ...own, embedding: { ...embedding, files: { ...embedding.files, head } } };
  expect(names).not.toContain(nameOfModels(another));
  const tuned = { ...own.segmentation.tuned, 'precision-2': { windows: { stepSamples: 48_000 } } };
  expect(names).not.toContain(nameOfModels({ ...own, segmentation: { ...own.segmentation, tuned } }));
  const { fastSegmentation, ...alone } = own;
  expect(names).not.toContain(nameOfModels(alone));
  const facts = { ...embedding.facts, featureFloorNats: 11 };
  expect(names).not.toContain(nameOfModels({ ...own, embedding: { ...embedding, facts } }));
  expect(names).toContain(nameOfModels({ ...own, name: 'the same under another name' }));
});
