import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { condensedIndex, cosineDistances } from '../../src/diarization/clustering/linkage.ts';
import { vbx } from '../../src/diarization/clustering/vbx.ts';
import { assignOptimally, normalise, rint } from '../../src/diarization/numerics.ts';
import { buildPowerset, decodeHard } from '../../src/diarization/segmenter.ts';
import { cosineMatrix } from '../helpers/cosine.ts';
import { rebuild, turnsOf } from './rebuild.ts';
import { canonical, golden, goldenPath, hasGolden, largestDifference } from './shared.ts';

const FRAMES = { shiftSamples: 270, sizeSamples: 991 };

describe.skipIf(!hasGolden)('arrays of the reference pipeline (community-1 recipe)', () => {
  it('powerset mappings are equal', () => {
    for (const [speakers, maxOverlap] of [
      [2, 1],
      [2, 2],
      [3, 1],
      [3, 2],
      [3, 3],
      [4, 1],
      [4, 2],
      [4, 3],
      [4, 4],
    ]) {
      const { mapping, classes } = buildPowerset(speakers, maxOverlap);
      const expected = golden(`powerset_mapping_${speakers}_${maxOverlap}`);
      expect(expected.shape).toEqual([classes, speakers]);
      expect(Array.from(mapping)).toEqual(Array.from(expected.data));
    }
  });

  it('hard powerset decoding is equal', () => {
    const decoded = decodeHard(golden('powerset_input_logits').data, buildPowerset(3, 2));
    expect(Array.from(decoded)).toEqual(Array.from(golden('powerset_hard_output').data));
  });

  it('cosine distances differ by less than 1e-6', async () => {
    const { data, shape } = golden('cosine_sim_input');
    const [count, dimension] = shape;
    const embeddings = Float32Array.from(data);
    for (let row = 0; row < count; row++) normalise(embeddings, row * dimension, dimension);
    const distances = await cosineDistances({ count, dimension }, embeddings, async () => undefined);
    const similarities = golden('cosine_sim_expected').data;
    const expected = Float64Array.from(distances);
    for (let i = 0; i < count; i++) {
      for (let j = i + 1; j < count; j++) {
        expected[condensedIndex(i, j, count)] = Math.max(0, 1 - similarities[i * count + j]);
      }
    }
    expect(largestDifference(distances, expected)).toBeLessThan(1e-6);
  });

  it('VBx responsibilities and priors differ by less than 1e-9', async () => {
    const result = await vbx(
      golden('pipeline_plda_features').data as Float64Array,
      golden('pipeline_plda_phi').data as Float64Array,
      golden('pipeline_ahc_clusters').data,
      { statisticsScale: 0.07, speakerRegularisation: 0.8, initSmoothing: 7, maxIterations: 20, epsilon: 1e-4 },
    );
    expect(largestDifference(result.gamma, golden('pipeline_vbx_gamma').data)).toBeLessThan(1e-9);
    expect(largestDifference(result.pi, golden('pipeline_vbx_pi').data)).toBeLessThan(1e-9);
  });

  it('constrained assignment to the VBx centroids is equal', () => {
    const embeddings = golden('pipeline_embeddings_data');
    const [windows, locals, dimension] = embeddings.shape;
    const training = golden('pipeline_train_embeddings');
    const gamma = golden('pipeline_vbx_gamma');
    const clusters = gamma.shape[1];
    const centroids = new Float32Array(clusters * dimension);
    for (let row = 0; row < training.shape[0]; row++) {
      for (let cluster = 0; cluster < clusters; cluster++) {
        for (let d = 0; d < dimension; d++) {
          centroids[cluster * dimension + d] +=
            gamma.data[row * clusters + cluster] * training.data[row * dimension + d];
        }
      }
    }
    const expected = golden('pipeline_hard_clusters').data;
    for (let window = 0; window < windows; window++) {
      const present = Array.from({ length: locals }, (_, local) => local).filter(
        (local) => !Number.isNaN(embeddings.data[(window * locals + local) * dimension]),
      );
      const rows = Float32Array.from(
        present.flatMap((local) => {
          const start = (window * locals + local) * dimension;
          return Array.from(embeddings.data.slice(start, start + dimension));
        }),
      );
      const chosen = assignOptimally(cosineMatrix(rows, centroids, dimension), present.length, clusters);
      present.forEach((local, index) => {
        const cluster = expected[window * locals + local];
        // −2 marks a local speaker who is never active.
        if (cluster >= 0) expect(chosen[index]).toBe(cluster);
      });
    }
  });

  it.each([
    ['pipeline', 18, 'expected.rttm'],
    ['pipeline', 18, 'pipeline_expected.rttm'],
    ['short', 1, 'short_expected.rttm'],
    ['single_speaker', 7, 'single_speaker_expected.rttm'],
  ])(
    '%s: speaker counts and discrete diarization of %s windows are equal, turns within 1 ms of %s',
    (name, windows, rttm) => {
      const segmentation = golden(`${name}_segmentation_data`);
      const expectedCounts = golden(`${name}_speaker_counting_data`);
      const discrete = golden(`${name}_discrete_diarization_data`);
      const [totalFrames, clusters] = discrete.shape;
      expect(segmentation.shape).toEqual([windows, 589, 3]);
      const rebuilt = rebuild({
        segmentation: segmentation.data,
        windows,
        framesPerWindow: 589,
        // The recordings of one speaker have no stored clusters: all local speakers are in cluster 0.
        hardClusters: name === 'pipeline' ? golden('pipeline_hard_clusters').data : new Int8Array(windows * 3),
        clusters,
        stepSamples: 16000,
        ...FRAMES,
        totalFrames,
      });
      expect(rebuilt.counts.map(rint)).toEqual(Array.from(expectedCounts.data));
      expect(Array.from(rebuilt.discrete)).toEqual(Array.from(discrete.data));

      const lines = readFileSync(goldenPath(rttm), 'utf8').trim().split('\n');
      const turns = turnsOf(rebuilt.discrete, clusters, FRAMES);
      const speakers = canonical(turns.map(([cluster]) => cluster));
      expect(turns.length).toBe(lines.length);
      lines.forEach((line, index) => {
        const [, , , start, duration, , , label] = line.split(/\s+/);
        expect(label).toBe(`SPEAKER_0${speakers[index]}`);
        expect(turns[index][1]).toBeCloseTo(Number(start), 3);
        expect(turns[index][2]).toBeCloseTo(Number(start) + Number(duration), 3);
      });
    },
  );
});
