import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { averageLinkage, condensedIndex, cutAtHeight } from '../../src/diarization/clustering/linkage.ts';
import { vbx } from '../../src/diarization/clustering/vbx.ts';
import { assignOptimally, rint } from '../../src/diarization/numerics.ts';
import { buildPowerset, decodeHard, marginals } from '../../src/diarization/segmenter.ts';
import { rebuild, turnsOf } from './rebuild.ts';
import { canonical, largestDifference, reference, referenceJsonPath } from './shared.ts';

interface Reference {
  readonly reconstruction: Record<
    string,
    {
      readonly shift: number;
      readonly size: number;
      readonly frames: number;
      readonly step: number;
      readonly windows: number;
      readonly turns: Record<string, [cluster: number, start: number, end: number][]>;
    }
  >;
  readonly clustering: Record<string, { heights: number[]; sizes: number[]; cuts: Record<string, number[]> }>;
  readonly vbx: { initial: number[]; cases: { fa: number; fb: number; gamma: number[]; pi: number[] }[] };
  readonly assignment: { rows: number; columns: number; scores: number[]; columns_of: number[] }[];
}

const expected: Reference = JSON.parse(readFileSync(referenceJsonPath, 'utf8'));
const CLUSTERS = 4;

describe('arrays made with pyannote.audio and scipy (make_reference.py)', () => {
  it('hard powerset decoding is equal, marginals differ by less than 1e-6', () => {
    const scores = reference('powerset_log_probabilities').data;
    const powerset = buildPowerset(3, 2);
    expect(Array.from(decodeHard(scores, powerset))).toEqual(Array.from(reference('powerset_hard').data));
    const soft = marginals(Float32Array.from(scores, Math.exp), powerset);
    expect(largestDifference(soft, reference('powerset_soft').data)).toBeLessThan(1e-6);
  });

  it.each(Object.keys(expected.reconstruction))(
    'overlap-add of %s frames has equal counts and discrete diarization',
    (name) => {
      const { shift, size, frames, step, windows, turns } = expected.reconstruction[name];
      const discrete = reference(`${name}_discrete`);
      const [totalFrames, clusters] = discrete.shape;
      expect(clusters).toBe(CLUSTERS);
      const rebuilt = rebuild({
        segmentation: reference(`${name}_segmentation`).data,
        windows,
        framesPerWindow: frames,
        hardClusters: reference(`${name}_hard_clusters`).data,
        clusters,
        stepSamples: step,
        shiftSamples: shift,
        sizeSamples: size,
        totalFrames,
      });
      expect(rebuilt.counts.map(rint)).toEqual(Array.from(reference(`${name}_counts`).data));
      for (let frame = 0; frame < totalFrames; frame++) {
        const activations = rebuilt.activations.subarray(frame * clusters, (frame + 1) * clusters);
        const chosen = (active: ArrayLike<number>) =>
          Array.from(activations)
            .filter((activation, cluster) => activation > 0 && active[frame * clusters + cluster] > 0)
            .sort();
        // Compared by activation, because the reference's sort is not stable. It also fills up the count with clusters
        // without local speakers, where this frame has fewer speakers.
        expect(chosen(rebuilt.discrete), `frame ${frame}`).toEqual(chosen(discrete.data));
      }

      for (const [pauses, expectedTurns] of Object.entries(turns)) {
        const [off, on] = pauses.split(',').map(Number);
        const found = turnsOf(discrete.data, clusters, { shiftSamples: shift, sizeSamples: size }, { off, on });
        const sort = (list: readonly [number, number, number][]) =>
          [...list]
            .sort((a, b) => a[1] - b[1] || a[0] - b[0])
            .map(([cluster, start, end]) => [cluster, start.toFixed(4), end.toFixed(4)]);
        expect(sort(found)).toEqual(sort(expectedTurns));
      }
    },
  );

  it('average linkage has heights within 1e-5, and equal sizes and cuts', async () => {
    const { data, shape } = reference('points');
    const [count, dimension] = shape;
    const distances = new Float32Array((count * (count - 1)) / 2);
    for (let i = 0; i < count; i++) {
      for (let j = i + 1; j < count; j++) {
        let product = 0;
        for (let d = 0; d < dimension; d++) product += data[i * dimension + d] * data[j * dimension + d];
        distances[condensedIndex(i, j, count)] = 1 - product;
      }
    }
    const merges = await averageLinkage(distances, new Float64Array(count).fill(1), async () => undefined);
    const { heights, sizes, cuts } = expected.clustering.average;
    expect(
      largestDifference(
        merges.map(({ height }) => height),
        heights,
      ),
    ).toBeLessThan(1e-5);
    expect(merges.map(({ size }) => size)).toEqual(sizes);
    for (const [threshold, labels] of Object.entries(cuts)) {
      expect(canonical(cutAtHeight(merges, count, Number(threshold)))).toEqual(canonical(labels));
    }
  });

  it('VBx from wrong initial clusters differs by less than 1e-8', async () => {
    for (const { fa, fb, gamma, pi } of expected.vbx.cases) {
      const result = await vbx(
        reference('vbx_features').data as Float64Array,
        reference('vbx_phi').data as Float64Array,
        expected.vbx.initial,
        { statisticsScale: fa, speakerRegularisation: fb, initSmoothing: 7, maxIterations: 20, epsilon: 1e-4 },
      );
      expect(largestDifference(result.gamma, gamma)).toBeLessThan(1e-8);
      expect(largestDifference(result.pi, pi)).toBeLessThan(1e-8);
    }
  });

  it('optimal assignment is equal', () => {
    for (const { rows, columns, scores, columns_of } of expected.assignment) {
      expect(Array.from(assignOptimally(scores, rows, columns))).toEqual(columns_of);
    }
  });
});
