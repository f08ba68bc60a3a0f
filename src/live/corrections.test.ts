import { expect, it } from 'vitest';
import { Corrections } from './corrections.ts';
import { LIVE } from './live-parameters.ts';
import type { BlockSource } from './stream-buffer.ts';
import type { Speakers } from './stream-speakers.ts';

const SHIFT = 320;
/** Frames per second. */
const SECOND = 50;

/** A stream in which the embedding of each second is one of four axes. */
function bufferOf(axes: readonly number[]): BlockSource {
  return {
    blockSamples: 1600,
    blocks: { from: 0, to: 10 * axes.length },
    async embed(blocks) {
      const sum = new Float32Array(4);
      for (const block of blocks) sum[axes[Math.floor(block / 10)]] += 1 / blocks.length;
      const length = Math.hypot(...sum);
      return sum.map((value) => value / length);
    },
  };
}

/** Speakers by the axis of their centroid; undefined for an unused label. */
function speakersOf(axes: readonly (number | undefined)[]): Speakers {
  const inUse = axes.flatMap((axis, label) => (axis === undefined ? [] : [label]));
  return {
    inUse: () => inUse,
    similarity: (v: Float32Array, label: number) => v[axes[label]!],
  } as unknown as Speakers;
}

const always = () => true;

/** Sends turns of [label, from, until] in seconds. */
async function send(
  corrections: Corrections,
  buffer: BlockSource,
  turns: readonly (readonly [number, number, number])[],
) {
  for (const [label, from, until] of turns) {
    corrections.start(label, from * SECOND);
    await corrections.end(label, until * SECOND, buffer, always);
  }
}

it('relabels spans by their embedding, and joins consecutive spans of a speaker', async () => {
  const corrections = new Corrections(SHIFT);
  const turns = [
    [0, 0, 2],
    [1, 2, 3],
    [0, 3, 4],
    [0, 5, 6],
    [0, 6, 8],
  ] as const;
  await send(corrections, bufferOf([0, 0, 1, 1, 1, 1, 0, 0]), turns);
  const speakers = speakersOf([0, 1]);
  expect(corrections.revise(speakers, always)).toEqual([{ label: 0, to: 1, from: 3 * SECOND, until: 6 * SECOND }]);
  // A change is sent once.
  expect(corrections.revise(speakers, always)).toEqual([]);
});

it('reverses a correction if a later clustering differs', async () => {
  const corrections = new Corrections(SHIFT);
  await send(corrections, bufferOf([0, 1]), [
    [0, 0, 1],
    [1, 1, 2],
  ]);
  expect(corrections.revise(speakersOf([1, 0]), always)).toEqual([
    { label: 0, to: 1, from: 0, until: SECOND },
    { label: 1, to: 0, from: SECOND, until: 2 * SECOND },
  ]);
  expect(corrections.revise(speakersOf([0, 1]), always)).toEqual([
    { label: 1, to: 0, from: 0, until: SECOND },
    { label: 0, to: 1, from: SECOND, until: 2 * SECOND },
  ]);
});

it('keeps the label of a span without a clear margin', async () => {
  const corrections = new Corrections(SHIFT);
  const buffer = bufferOf([0, 1]);
  await send(
    corrections,
    { ...buffer, embed: async () => Float32Array.of(0.68, 0.68 + 0.7 * LIVE.correctionMargin, 0, 0) },
    [[0, 0, 1]],
  );
  expect(corrections.revise(speakersOf([0, 1]), always)).toEqual([]);
});

it('relabels spans without an embedding only with the rest of an unused label', async () => {
  const corrections = new Corrections(SHIFT);
  const buffer = bufferOf([0, 0, 0, 0]);
  await send(corrections, buffer, [[2, 0, 1]]);
  await send(corrections, { ...buffer, embed: async () => undefined }, [[2, 1, 2]]);
  await send(corrections, buffer, [[1, 2, 3]]);
  expect(corrections.revise(speakersOf([undefined, 0, undefined]), always)).toEqual([
    { label: 2, to: 1, from: 0, until: 2 * SECOND },
  ]);
  await send(corrections, { ...buffer, embed: async () => undefined }, [[1, 3, 4]]);
  expect(corrections.revise(speakersOf([undefined, 1, 0]), always)).toEqual([
    { label: 1, to: 2, from: 0, until: SECOND },
    { label: 1, to: 2, from: 2 * SECOND, until: 3 * SECOND },
  ]);
});

it('keeps the spans of an unused label that are similar to no speaker in use', async () => {
  const corrections = new Corrections(SHIFT);
  const buffer = bufferOf([2, 2, 0, 1]);
  await send(corrections, buffer, [
    [2, 0, 2],
    [0, 2, 3],
    [1, 3, 4],
  ]);
  await send(corrections, { ...buffer, embed: async () => undefined }, [[2, 4, 5]]);
  expect(corrections.revise(speakersOf([0, 1, undefined]), always)).toEqual([]);
  // One similar span does not take the others along.
  await send(corrections, buffer, [[2, 3, 4]]);
  expect(corrections.revise(speakersOf([0, 1, undefined]), always)).toEqual([
    { label: 2, to: 1, from: 3 * SECOND, until: 4 * SECOND },
  ]);
});

it('covers all joined spans if corrected spans overlap', async () => {
  const corrections = new Corrections(SHIFT);
  const buffer = bufferOf([0, 0, 0, 0]);
  corrections.start(0, 0);
  await send(corrections, buffer, [[1, 2, 3]]);
  await corrections.end(0, 4 * SECOND, buffer, always);
  expect(corrections.revise(speakersOf([0, undefined]), always)).toEqual([
    { label: 1, to: 0, from: 2 * SECOND, until: 3 * SECOND },
  ]);
  expect(corrections.revise(speakersOf([undefined, undefined, 0]), always)).toEqual([
    { label: 0, to: 2, from: 0, until: 4 * SECOND },
  ]);
});

it('cuts open turns into spans, and keeps the maximum number of spans', async () => {
  const corrections = new Corrections(SHIFT);
  const buffer = bufferOf(Array(LIVE.maxSentSpans * 2 * LIVE.sentSpanSeconds).fill(0));
  corrections.start(1, 0);
  const seconds = (LIVE.maxSentSpans + 10) * LIVE.sentSpanSeconds;
  for (let second = 1; second <= seconds; second++) await corrections.cut(second * SECOND, buffer, always);
  const { pieces, open } = corrections.save();
  expect(pieces).toHaveLength(LIVE.maxSentSpans);
  expect(pieces[0].until - pieces[0].from).toBe(LIVE.sentSpanSeconds * SECOND);
  expect(open).toEqual([{ label: 1, from: seconds * SECOND }]);
  const restored = new Corrections(SHIFT);
  restored.restore(corrections.save());
  const changes = corrections.revise(speakersOf([0, 1]), always);
  expect(changes).toEqual([{ label: 1, to: 0, from: pieces[0].from, until: seconds * SECOND }]);
  expect(restored.revise(speakersOf([0, 1]), always)).toEqual(changes);
});

it('delays a change to a label until the label has a public number', async () => {
  const corrections = new Corrections(SHIFT);
  await send(corrections, bufferOf([0, 1, 2]), [
    [0, 0, 1],
    [0, 1, 2],
    [0, 2, 3],
  ]);
  const speakers = speakersOf([0, 1, 2]);
  const change = (to: number, from: number) => ({ label: 0, to, from: from * SECOND, until: (from + 1) * SECOND });
  expect(corrections.revise(speakers, (label) => label === 0)).toEqual([]);
  const restored = new Corrections(SHIFT);
  restored.restore(corrections.save());
  expect(restored.revise(speakers, (label) => label !== 1)).toEqual([change(2, 2)]);
  expect(restored.revise(speakers, always)).toEqual([change(1, 1)]);
  expect(restored.revise(speakers, always)).toEqual([]);
});
