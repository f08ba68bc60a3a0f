import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { nodeRuntimes } from '../../../bench/pipeline.ts';
import { decodeFile } from '../../../client/audio/file.ts';
import { nodeAudio } from '../../../client/audio/ports.ts';
import { cosineMatrix } from '../../../test/helpers/cosine.ts';
import { plainPooling } from '../../../test/helpers/fake-models.ts';
import { conversationSamples } from '../../../test/helpers/voices.ts';
import { raiseFloor, subtractMean } from '../../diarization/embedder.ts';
import type { SegmentationPort } from '../../diarization/model-ports.ts';
import { Segmenter } from '../../diarization/segmenter.ts';
import { createDsp } from '../wasm/dsp.ts';
import {
  allFiles,
  type EmbeddingEntry,
  embeddingFiles,
  type ModelFile,
  parseManifest,
  type SegmentationEntry,
  segmentationFile,
  segmentationsFor,
} from './manifest.ts';
import { createEmbedding, createSegmentation, segmentationInfo } from './sessions.ts';

const models = new URL('../../../models/', import.meta.url);
const bytes = (name: string) => readFileSync(new URL(name, models));
const reference = new URL('../../../../shared/models/segmentation-3.0.int8.onnx', import.meta.url);
const hasReference = existsSync(reference);
if (!hasReference) console.warn('skipped: ../shared/models is not beside this checkout');

const manifest = parseManifest(JSON.parse(readFileSync(new URL('manifest.json', models), 'utf8')));
const pack = manifest.packs.get('default')!;
const wholeFile = allFiles(pack).find(({ path }) => path === 'segmentation-v8.onnx')!;
const [fast] = segmentationsFor(pack, 'community-1');
const network = () => bytes(segmentationFile(fast).path);
const dsp = createDsp(new WebAssembly.Module(readFileSync(new URL('../wasm/dsp/dsp.wasm', models))));
const conversation = await conversationSamples();
const runtimes = nodeRuntimes();

/** Bursts of harmonics of a voice-like pitch with silence in between. */
const samples = Float32Array.from({ length: 160000 }, (_, i) => {
  const t = i / 16000;
  const voiced = t % 2 < 1.4;
  let sum = 0;
  for (let k = 1; k < 20; k++) sum += Math.sin(2 * Math.PI * k * (120 * t + 3 * Math.sin(5 * t))) / k;
  return voiced ? 0.1 * sum : 0;
});

describe('segmentation', () => {
  it('gives reproducible log-probabilities of the powerset for each frame', async () => {
    const segmentation = await createSegmentation(runtimes, network(), fast);
    const { framesPerWindow, classes } = segmentation.info;
    const first = await new Segmenter(segmentation, dsp.melPower).run(samples, 0);
    expect(first.length).toBe(framesPerWindow * classes);
    for (let frame = 0; frame < framesPerWindow; frame++) {
      let sum = 0;
      for (let index = 0; index < classes; index++) sum += Math.exp(first[frame * classes + index]);
      expect(sum).toBeCloseTo(1, 4);
    }
    expect(await new Segmenter(segmentation, dsp.melPower).run(samples, 0)).toEqual(first);
  });

  it('of samples gives, in floating point and in 8 bits, what the kernel gives on mel powers', async () => {
    if (fast.form !== 'split' || !fast.files.wholeInt8) throw new Error('the pack has no such form');
    const kernel = await createSegmentation(runtimes, network(), fast);
    const whole = async (model: ModelFile) =>
      createSegmentation(runtimes, bytes(model.path), { ...fast, form: 'whole', files: { model } });
    const models: [SegmentationPort, number][] = [
      [await whole(wholeFile), 0.001],
      [await whole(fast.files.wholeInt8), 0.03],
    ];
    // Convolutions with a stride of two leave frames over.
    const windows = [
      conversation.subarray(0, 160_000),
      conversation.subarray(32_000, 32_000 + 403 * 160),
      conversation.subarray(32_000, 32_000 + 202 * 160),
      conversation.slice(0, 160_000).fill(0, 0, 100_000),
    ];
    for (const window of windows) {
      const expected = await new Segmenter(kernel, dsp.melPower).run(window, 0);
      for (const [model, largest] of models) {
        const scores = await new Segmenter(model, dsp.melPower).run(window, 0);
        expect(scores.length).toBe(expected.length);
        // Share of the probability that moves to another class.
        const moved = scores.reduce((sum, value, at) => sum + Math.abs(Math.exp(value) - Math.exp(expected[at])), 0);
        expect(moved / 2 / (scores.length / 7)).toBeLessThan(largest);
      }
    }
  });

  it('prefers facts of the file to those of the manifest', () => {
    const facts = { ...fast.facts, frameShiftSamples: 999, maxLocalSpeakers: 9 };
    const info = segmentationInfo(bytes(wholeFile.path), { ...fast, facts });
    expect([info.frameShiftSamples, info.maxLocalSpeakers]).toEqual([320, 3]);
  });

  it('refuses a file that is no segmentation', async () => {
    const page = new TextEncoder().encode('<html>not found</html>');
    const whole = { ...fast, form: 'whole', files: { model: wholeFile } } as SegmentationEntry;
    await expect(createSegmentation(runtimes, page, whole)).rejects.toThrow(/not an ONNX model/);
    const wrong = { ...whole, facts: { ...fast.facts, classes: 8 } };
    await expect(createSegmentation(runtimes, bytes('embedder-v6-head.onnx'), wrong)).rejects.toThrow(/powerset/);
    await expect(createSegmentation(runtimes, page, fast)).rejects.toThrow(/not the weights of segmentation-v8/);
  });

  it('runs segmentation-3.0 in its kernel with the facts of the manifest', async () => {
    const entry = pack.segmentation;
    const segmentation = await createSegmentation(runtimes, bytes(segmentationFile(entry).path), entry);
    expect(segmentation.info).toMatchObject({ id: 'segmentation-3.0', framesPerWindow: 589, frameShiftSamples: 270 });
    expect((await new Segmenter(segmentation, dsp.melPower).run(samples, 0)).length).toBe(589 * 7);
    const message = /^not the weights of segmentation-3\.0: needs 3051840 bytes, version 1, network 2$/;
    await expect(createSegmentation(runtimes, bytes('embedder-v6-trunk.weights'), entry)).rejects.toThrow(message);
  });

  it.skipIf(!hasReference)('runs segmentation-3.0 by its manifest entry alone', async () => {
    const entry = manifest.packs.get('studio')!.segmentation;
    const segmentation = await createSegmentation(runtimes, readFileSync(reference), entry);
    expect(segmentation.info).toMatchObject({ framesPerWindow: 589, frameShiftSamples: 270, frameSizeSamples: 991 });
    expect((await new Segmenter(segmentation, dsp.melPower).run(samples, 0)).length).toBe(589 * 7);
  });
});

const GOLDEN = new URL('../../../test/golden/data/embedder_v6.json', import.meta.url);
const SPEECH = new URL('../../../test/fixtures/formats/mp2-16000-mono.mp2', import.meta.url).pathname;
const embedderFiles = () => embeddingFiles(pack.embedding).map(({ path }) => bytes(path));
const wholeEmbedder = () => readFileSync(new URL('../../../test/fixtures/models/whole-embedder.onnx', import.meta.url));

describe('embedding', () => {
  const features = (samples: Float32Array) => {
    const feats = dsp.filterbank.compute(samples).slice();
    raiseFloor(feats, 10);
    subtractMean(feats);
    return feats;
  };
  const feats = features(conversation.subarray(0, 599 * 160 + 400));
  const whole: EmbeddingEntry = {
    ...pack.embedding,
    form: 'whole',
    files: { model: { path: 'whole-embedder.onnx', bytes: 0, sha256: '' } },
  };

  it('with the trunk in its kernel agrees with the published network in PyTorch (make_embedder.py)', async () => {
    const halves = await createEmbedding(runtimes, embedderFiles(), pack.embedding);
    if (halves.form !== 'split') throw new Error('unexpected form');
    const speech = await decodeFile(SPEECH, nodeAudio());
    const trunk = await halves.trunk(features(speech.subarray(0, 64_000)), 398);
    expect([trunk.frameCount, trunk.channels, trunk.frames.length]).toEqual([199, 512, 199 * 512]);
    const mask = new Uint8Array(199).fill(1);
    const pooled = await halves.head(plainPooling.pool([{ trunk, mask }])!, 1);
    const expected = Float32Array.from(JSON.parse(readFileSync(GOLDEN, 'utf8')) as number[]);
    expect(expected.length).toBe(192);
    expect(cosineMatrix(expected, pooled, 192)[0]).toBeGreaterThan(0.9998);
    // An odd, smaller number of frames: the last stretch of a recording.
    expect((await halves.trunk(feats.slice(0, 333 * 80), 333)).frameCount).toBe(167);
  });

  it('runs a whole embedder', async () => {
    const one = await createEmbedding(runtimes, [wholeEmbedder()], whole);
    if (one.form !== 'whole') throw new Error('unexpected form');
    const embedding = await one.embed(feats, 600);
    expect(embedding.length).toBe(192);
    expect(embedding.every(Number.isFinite)).toBe(true);
  });

  it('refuses an entry that contradicts the file', async () => {
    const other = { ...whole, facts: { ...whole.facts, dimension: 256 } } as EmbeddingEntry;
    await expect(createEmbedding(runtimes, [wholeEmbedder()], other)).rejects.toThrow(/output_dim 192/);
  });

  it('refuses damaged weights, and those of another network', async () => {
    const [trunk, head] = embedderFiles();
    const message = /^not the weights of CAM\+\+'s trunk: needs 14527760 bytes, version 1, network 1$/;
    for (const weights of [wholeEmbedder(), bytes('segmentation-3.0.weights'), trunk.subarray(0, -1)]) {
      await expect(createEmbedding(runtimes, [weights, head], pack.embedding)).rejects.toThrow(message);
    }
    await expect(createEmbedding(runtimes, [trunk, head.subarray(0, 1000)], pack.embedding)).rejects.toThrow();
  });
});

describe('the runtime', () => {
  it('takes at most 56 MB of memory for the default pack', async () => {
    // ONNX Runtime has one heap in a process, which other test files may share. In a fresh one all takes 52 MB.
    const before = runtimes.memoryBytes();
    for (const entry of [pack.segmentation, fast]) {
      const segmentation = await createSegmentation(runtimes, bytes(segmentationFile(entry).path), entry);
      await new Segmenter(segmentation, dsp.melPower).run(samples, 0);
    }
    const embedding = await createEmbedding(runtimes, embedderFiles(), pack.embedding);
    if (embedding.form !== 'split') throw new Error('unexpected form');
    await embedding.trunk(dsp.filterbank.compute(samples), 998);
    const growth = runtimes.memoryBytes() - before;
    // The kernels alone have 29 MB.
    expect(growth).toBeGreaterThan(28e6);
    expect(growth).toBeLessThan(56e6);
  });

  it('gives concurrent chains of runs the same results as sequential ones', async () => {
    const segmentation = await createSegmentation(runtimes, network(), fast);
    const embedding = await createEmbedding(runtimes, embedderFiles(), pack.embedding);
    if (embedding.form !== 'split') throw new Error('unexpected form');
    const segmenter = new Segmenter(segmentation, dsp.melPower);
    const second = (at: number) => conversation.subarray(at * 16_000, (at + 1) * 16_000);
    const chain = async (run: (samples: Float32Array) => Promise<Float32Array>, from: number) => {
      const results: Float32Array[] = [];
      for (let at = from; at < from + 8; at++) results.push((await run(second(at))).slice());
      return results;
    };
    const segmentations = (from: number) => chain((samples) => segmenter.run(samples, 0), from);
    const embeddings = (from: number) =>
      chain(async (samples) => (await embedding.trunk(dsp.filterbank.compute(samples), 98)).frames, from);
    const sequential = [await embeddings(0), await segmentations(5), await segmentations(10)];
    expect(await Promise.all([embeddings(0), segmentations(5), segmentations(10)])).toEqual(sequential);
  });

  it('ends a run in its iteration of the event loop, and continues after a failed run', async () => {
    const segmentation = await createSegmentation(runtimes, network(), fast);
    if (segmentation.form !== 'split') throw new Error('unexpected form');
    let iterations = 0;
    const next = setImmediate(() => iterations++);
    const wrong = segmentation.run(new Float32Array(7), 400);
    await Promise.allSettled([wrong, segmentation.run(new Float32Array(400 * 64), 400)]);
    expect(iterations).toBe(0);
    clearImmediate(next);
    await expect(wrong).rejects.toThrow();
    expect((await segmentation.run(new Float32Array(400 * 64), 400)).length % fast.facts.classes).toBe(0);
  });

  it('does not affect other modules and restores WebAssembly.instantiate', async () => {
    // An empty module.
    const empty = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
    const instance = await WebAssembly.instantiate(new WebAssembly.Module(empty));
    expect(Object.keys(instance.exports)).toEqual([]);
    expect(WebAssembly.instantiate.toString()).toContain('native code');
  });
});
