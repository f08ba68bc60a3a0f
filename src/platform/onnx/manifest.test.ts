import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type SettingName, settingsOf, withTuning } from '../../diarization/parameters.ts';
import {
  allFiles,
  canFollowStreams,
  filesToLoad,
  packInUse,
  parseManifest,
  segmentationsFor,
  segmentationsOf,
} from './manifest.ts';

const models = new URL('../../../models/', import.meta.url);
const json = () => JSON.parse(readFileSync(new URL('manifest.json', models), 'utf8'));

describe('models/manifest.json', () => {
  it('lists existing files with their size and hash', () => {
    const pack = parseManifest(json()).packs.get('default')!;
    for (const file of allFiles(pack)) {
      const bytes = readFileSync(new URL(file.path, models));
      expect([file.path, bytes.length]).toEqual([file.path, file.bytes]);
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(file.sha256);
    }
  });

  it('has the pack in use, cards of our models, and URLs of all others', () => {
    const manifest = parseManifest(json());
    expect(packInUse(manifest).name).toBe(manifest.use);
    for (const pack of manifest.packs.values()) {
      for (const { source } of [...segmentationsOf(pack), pack.embedding]) {
        const card = /models\/(cards\/\S+\.md)/.exec(source)?.[1];
        if (card !== undefined) expect(readFileSync(new URL(card, models), 'utf8').length).toBeGreaterThan(500);
      }
      if (pack.name !== 'default') for (const file of allFiles(pack)) expect(file.origin?.url).toMatch(/^https:/);
    }
  });

  it('tunes only existing parameters', () => {
    for (const pack of parseManifest(json()).packs.values()) {
      for (const name of ['precision-2', 'community-1'] as const) {
        for (const { tuned } of [...segmentationsOf(pack), pack.embedding]) {
          expect(() => withTuning(settingsOf(name), tuned)).not.toThrow();
        }
      }
    }
  });
});

describe('parseManifest', () => {
  it('loads the weights of kernels, the head of the embedder and the PLDA, not the forms for other engines', () => {
    const pack = parseManifest(json()).packs.get('default')!;
    expect(filesToLoad(pack).map(({ path }) => path)).toEqual([
      'segmentation-3.0.weights',
      'segmentation-v8.weights',
      'embedder-v6-trunk.weights',
      'embedder-v6-head.onnx',
      'embedder-v6-plda.json',
    ]);
    expect(allFiles(pack).length).toBe(9);
  });

  it('gives each setting its segmentations', () => {
    const { packs } = parseManifest(json());
    const ids = (pack: string, setting: SettingName) => segmentationsFor(packs.get(pack)!, setting).map(({ id }) => id);
    expect(ids('default', 'precision-2')).toEqual(['segmentation-3.0', 'segmentation-v8']);
    expect(ids('default', 'community-1')).toEqual(['segmentation-v8']);
    expect(ids('studio', 'precision-2')).toEqual(['segmentation-3.0']);
    expect(ids('studio', 'community-1')).toEqual(['segmentation-3.0']);
    expect(['default', 'studio'].map((name) => canFollowStreams(packs.get(name)!))).toEqual([true, false]);
  });

  const broken: [string, (manifest: ReturnType<typeof json>) => void][] = [
    ['version', (m) => (m.version = 2)],
    ['use', (m) => (m.use = 'nothing')],
    ['packs.default.segmentation.facts.classes', (m) => (m.packs.default.segmentation.facts.classes = 7.5)],
    ['packs.default.embedding.form', (m) => (m.packs.default.embedding.form = 'halved')],
    ['packs.default.embedding.files.head', (m) => delete m.packs.default.embedding.files.head],
    ['packs.default.embedding.files.trunk.sha256', (m) => (m.packs.default.embedding.files.trunk.sha256 = 'ABC')],
    [
      'packs.default.fastSegmentation.files.whole.path',
      (m) => (m.packs.default.fastSegmentation.files.whole.path = '../x'),
    ],
    [
      'packs.default.fastSegmentation.files.wholeInt8.bytes',
      (m) => (m.packs.default.fastSegmentation.files.wholeInt8.bytes = 0),
    ],
    ['packs.default.segmentation.files.weights', (m) => delete m.packs.default.segmentation.files.weights],
    ['packs.default.segmentation.form', (m) => delete m.packs.default.segmentation.form],
    ['packs.studio.segmentation.files.model', (m) => delete m.packs.studio.segmentation.files.model],
    ['packs.default.segmentation.tuned.precison-2', (m) => (m.packs.default.segmentation.tuned = { 'precison-2': {} })],
    ['packs.default.segmentation.tuned.all.x', (m) => (m.packs.default.segmentation.tuned = { all: { x: 'y' } })],
    ['packs.studio.embedding.files.model.origin.url', (m) => (m.packs.studio.embedding.files.model.origin.url = '')],
    ['packs.default.embedding.identification.slope', (m) => (m.packs.default.embedding.identification.slope = '1')],
    [
      'packs.default.embedding.identification.noiseSeconds',
      (m) => (m.packs.default.embedding.identification.noiseSeconds = -1),
    ],
  ];
  it.each(broken)('names the invalid member of a manifest: %s', (path, damage) => {
    const manifest = json();
    damage(manifest);
    expect(() => parseManifest(manifest)).toThrow(`models/manifest.json: ${path} `);
  });
});
