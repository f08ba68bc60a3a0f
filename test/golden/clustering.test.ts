import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parsePlda } from '../../src/diarization/clustering/plda.ts';
import { assignSpeakers, findSpeakers } from '../../src/diarization/clustering/strategy.ts';
import type { LocalSpeakers } from '../../src/diarization/local-speakers.ts';
import { settingsOf } from '../../src/diarization/parameters.ts';
import { readNpy } from '../helpers/npy.ts';

interface Expected {
  readonly recordings: Record<
    string,
    {
      windows: number[];
      cleanSeconds: number[];
      stepSeconds: number;
      subsegments: { indices: number[]; every: number };
    }
  >;
  readonly runs: Run[];
  readonly plda: unknown;
}

interface Run {
  readonly recording: string;
  /** VBx on the drawn PLDA. */
  readonly bayesian?: boolean;
  readonly subsegments?: boolean;
  /** Fb of VBx, which does not grow then. */
  readonly regularisation?: number;
  /** `mergeSimilarity`, `mergeItemSimilarity` and `sameItemSimilarity`. */
  readonly merging?: readonly [number, number, number];
  readonly min: number;
  readonly max: number | null;
  readonly count: number;
  readonly labels: number[];
}

const data = join(import.meta.dirname, 'data');
const expected: Expected = JSON.parse(readFileSync(join(data, 'clustering.json'), 'utf8'));

function recording(name: string): LocalSpeakers {
  const { windows, cleanSeconds } = expected.recordings[name];
  const { shape, data: embeddings } = readNpy(join(data, `clustering_${name}_embeddings.npy`));
  return {
    count: windows.length,
    dimension: shape[1],
    embeddings: Float32Array.from(embeddings),
    windows: Int32Array.from(windows),
    locals: new Uint8Array(windows.length),
    cleanSeconds: Float32Array.from(cleanSeconds),
    activeSeconds: Float32Array.from(cleanSeconds),
  };
}

function subsegmentsOf(name: string) {
  const { indices, every } = expected.recordings[name].subsegments;
  const { shape, data: embeddings } = readNpy(join(data, `clustering_${name}_subsegments.npy`));
  return {
    count: indices.length,
    dimension: shape[1],
    indices: Int32Array.from(indices),
    embeddings: Float32Array.from(embeddings),
    every,
  };
}

describe('clustering against training/calibration/clustering.py (write_golden.py)', () => {
  const { clustering } = settingsOf('precision-2');
  const plda = parsePlda(expected.plda);

  it.each(expected.runs)(
    '$recording windows, $min to $max speakers: $count (VBx $bayesian, subsegments $subsegments, joined $merging)',
    async (run) => {
      const speakers = recording(run.recording);
      const { stepSeconds } = expected.recordings[run.recording];
      const model = await findSpeakers(
        speakers,
        {
          ...clustering,
          bayesian: {
            ...clustering.bayesian,
            speakerRegularisation: run.regularisation ?? 1,
            maxRegularisation: run.regularisation ?? clustering.bayesian.maxRegularisation,
            initialThreshold: 0.45,
            mergeSimilarity: run.merging?.[0] ?? clustering.bayesian.mergeSimilarity,
            mergeItemSimilarity: run.merging?.[1] ?? clustering.bayesian.mergeItemSimilarity,
            sameItemSimilarity: run.merging?.[2] ?? clustering.bayesian.sameItemSimilarity,
          },
        },
        { min: run.min, max: run.max ?? Number.POSITIVE_INFINITY },
        { step: stepSeconds, window: 10 },
        {
          ...(run.bayesian ? { plda } : {}),
          ...(run.subsegments ? { subsegments: subsegmentsOf(run.recording) } : {}),
        },
      );
      expect(model.clusters).toBe(run.count);
      expect(Array.from(assignSpeakers(model, speakers).clusterOf)).toEqual(run.labels);
    },
  );
});
