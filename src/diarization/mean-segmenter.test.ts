import { expect, it } from 'vitest';
import { SEGMENTATION_INFO } from '../../test/helpers/fake-models.ts';
import { MeanSegmenter } from './mean-segmenter.ts';
import type { MelPowerPort, SegmentationInfo } from './model-ports.ts';
import { Segmenter } from './segmenter.ts';

const CLASSES = 7;
/** Numbers of the powerset's classes. */
const [NONE, A, B, C, AB, AC, BC] = [0, 1, 2, 3, 4, 5, 6];
const WINDOW = new Float32Array(1600);

const noMelPower: MelPowerPort = {
  compute() {
    throw new Error('the segmentation has its front end inside');
  },
};

/** A model that returns the same probabilities for every window. */
function modelOf(probabilities: readonly (readonly number[])[], info: Partial<SegmentationInfo> = {}): Segmenter {
  return new Segmenter(
    {
      form: 'whole',
      info: { ...SEGMENTATION_INFO, ...info },
      run: async () => Float32Array.from(probabilities.flat(), (probability) => Math.log(probability)),
    },
    noMelPower,
  );
}

/** A frame with most of its probability in one class. */
const certain = (index: number, probability = 0.94): number[] =>
  Array.from({ length: CLASSES }, (_, other) => (other === index ? probability : (1 - probability) / (CLASSES - 1)));

async function meanOf(first: Segmenter, second: Segmenter): Promise<number[][]> {
  const scores = await new MeanSegmenter(first, second).run(WINDOW, 0);
  return Array.from({ length: scores.length / CLASSES }, (_, frame) =>
    Array.from(scores.subarray(frame * CLASSES, (frame + 1) * CLASSES), Math.exp),
  );
}

function expectClose(found: readonly (readonly number[])[], expected: readonly (readonly number[])[]) {
  expect(found.length).toBe(expected.length);
  found.flat().forEach((value, at) => {
    expect(value).toBeCloseTo(expected.flat()[at], 5);
  });
}

it('is the mean of the probabilities if the local speakers have the same numbers', async () => {
  const first = [certain(A), certain(AB), certain(NONE)];
  const second = [certain(A, 0.7), certain(B, 0.7), certain(C, 0.4)];
  const mean = first.map((frame, at) => frame.map((value, index) => (value + second[at][index]) / 2));
  expectClose(await meanOf(modelOf(first), modelOf(second)), mean);
});

it.each([
  ['two exchanged', [B, A, C, AB, BC, AC]],
  ['three in a circle', [B, C, A, BC, AB, AC]],
  ['three in a circle, the other way', [C, A, B, AC, BC, AB]],
])('matches local speakers with other numbers: %s', async (_, [a, b, c, ab, ac, bc]) => {
  const frames = [A, A, AB, B, B, NONE, C, C, AC, BC].map((index) => certain(index));
  const renumbered = [a, a, ab, b, b, NONE, c, c, ac, bc].map((index) => certain(index));
  expectClose(await meanOf(modelOf(frames), modelOf(renumbered)), frames);
});

it('matches them separately in every window', async () => {
  const orders = [
    [A, B],
    [B, A],
  ];
  let call = 0;
  const first = modelOf([certain(A), certain(B)]);
  const second = new Segmenter(
    {
      form: 'whole',
      info: SEGMENTATION_INFO,
      run: async () =>
        Float32Array.from(
          orders[call++].flatMap((index) => certain(index)),
          Math.log,
        ),
    },
    noMelPower,
  );
  const mean = new MeanSegmenter(first, second);
  const windows = [await mean.run(WINDOW, 0), await mean.run(WINDOW, 1600)];
  expect(windows[1]).toEqual(windows[0]);
});

it('interpolates the second model between its frame centres, and keeps its first and last values', async () => {
  // Centres of the first model: 50, 150, 250 …; of the second: 200, 600.
  const first = Array.from({ length: 8 }, () => certain(NONE));
  const second = [certain(NONE, 0.9), certain(NONE, 0.5)];
  const found = await meanOf(
    modelOf(first, { frameShiftSamples: 100, frameSizeSamples: 100 }),
    modelOf(second, { frameShiftSamples: 400, frameSizeSamples: 400 }),
  );
  const interpolated = [0.9, 0.9, 0.85, 0.75, 0.65, 0.55, 0.5, 0.5];
  found.forEach((frame, at) => {
    expect(frame[NONE]).toBeCloseTo((0.94 + interpolated[at]) / 2, 5);
    expect(frame.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 5);
  });
  expect(found.length).toBe(8);
});

it('has the frames of the first model, also for shorter windows', async () => {
  const model = (frameShiftSamples: number) =>
    new Segmenter(
      {
        form: 'whole',
        info: { ...SEGMENTATION_INFO, frameShiftSamples, frameSizeSamples: frameShiftSamples },
        run: async (window) => {
          const frames = Math.floor(window.length / frameShiftSamples);
          return Float32Array.from(Array.from({ length: frames }, () => certain(B)).flat(), Math.log);
        },
      },
      noMelPower,
    );
  for (const [samples, frames] of [
    [160_000, 592],
    [48_000, 177],
    [640, 2],
  ]) {
    const scores = await new MeanSegmenter(model(270), model(320)).run(new Float32Array(samples), 0);
    expect(scores.length).toBe(frames * CLASSES);
    scores.forEach((score, at) => {
      expect(Math.exp(score)).toBeCloseTo(certain(B)[at % CLASSES], 5);
    });
  }
});

it('describes the frames of the first model under the names of both', () => {
  const first = modelOf([certain(A)], { id: 'one', frameShiftSamples: 270 });
  const { info } = new MeanSegmenter(first, modelOf([certain(A)], { id: 'two' }));
  expect([info.id, info.frameShiftSamples]).toEqual(['one+two', 270]);
});

it('refuses models with different windows or powersets', () => {
  const mean = (info: Partial<SegmentationInfo>) => () =>
    new MeanSegmenter(modelOf([certain(A)], { id: 'one' }), modelOf([certain(A)], { id: 'two', ...info }));
  expect(mean({ windowSamples: 80_000 })).toThrow('one and two have windows of different lengths');
  expect(mean({ maxLocalSpeakers: 4 })).toThrow('one and two have different powersets');
  expect(mean({ maxSimultaneous: 3 })).toThrow('one and two have different powersets');
});
