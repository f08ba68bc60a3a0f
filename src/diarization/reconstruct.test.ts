import { describe, expect, it } from 'vitest';
import { settingsOf } from './parameters.ts';
import type { ModelFacts } from './part.ts';
import { type AssignedPart, reconstruct } from './reconstruct.ts';

/** Windows of ten frames, one behind the other. A frame is longer than the distance to the next, as those of real models are. */
const FACTS: ModelFacts = {
  segmentationId: 's',
  embeddingId: 'e',
  windowSamples: 16000,
  stepSamples: 16000,
  maxLocalSpeakers: 2,
  maxSimultaneous: 1,
  classes: 3,
  frameShiftSamples: 1600,
  frameSizeSamples: 2400,
  framesPerWindow: 10,
  dimension: 1,
  tuned: [],
};

/** @param said by the first local speaker: first frame and the one behind the last. @param clusters of that local speaker, −1 for none */
async function turnsOf(said: readonly (readonly [number, number])[], clusters: readonly number[]) {
  const probabilities = new Uint8Array(clusters.length * FACTS.framesPerWindow * FACTS.classes);
  for (let at = 0; at < probabilities.length; at += FACTS.classes) {
    const frame = at / FACTS.classes;
    probabilities[at + (said.some(([from, to]) => frame >= from && frame < to) ? 1 : 0)] = 255;
  }
  const known = clusters.flatMap((cluster, window) => (cluster < 0 ? [] : [{ cluster, window }]));
  const part: AssignedPart = {
    frames: { firstWindow: 0, windowCount: clusters.length, probabilities },
    speakers: {
      count: known.length,
      dimension: 1,
      embeddings: new Float32Array(known.length),
      windows: Int32Array.from(known, ({ window }) => window),
      locals: new Uint8Array(known.length),
      cleanSeconds: new Float32Array(known.length),
      activeSeconds: new Float32Array(known.length),
    },
    assignment: {
      clusterOf: Int32Array.from(known, ({ cluster }) => cluster),
      posterior: Float32Array.from(known.flatMap(({ cluster }) => [0, 1].map((other) => (other === cluster ? 1 : 0)))),
    },
  };
  const totalSamples = clusters.length * FACTS.windowSamples;
  const { diarization } = await reconstruct((take) => take(part), {
    facts: FACTS,
    settings: settingsOf('precision-2'),
    clusters: 2,
    boost: new Float32Array(2).fill(1),
    totalSamples,
    durationSeconds: totalSamples / 16000,
    speakerTracks: true,
  });
  return diarization;
}

describe('reconstruct', () => {
  it('begins and ends turns halfway between the centres of two frames', async () => {
    const { turns, exclusiveTurns } = await turnsOf([[2, 5]], [0]);
    expect(turns).toMatchObject([{ startSeconds: 0.225, endSeconds: 0.525 }]);
    expect(exclusiveTurns).toMatchObject([{ startSeconds: 0.225, endSeconds: 0.525 }]);
  });

  it('puts the tracks where the turns are', async () => {
    const { speech } = (await turnsOf([[2, 5]], [0])).tracks;
    // Of 20 ms each: the first whose centre lies behind 0.225 s, and the first behind 0.525 s.
    expect([speech.indexOf(255), speech.lastIndexOf(255) + 1]).toEqual([11, 26]);
  });

  it('leaves to nobody what a local speaker without an embedding says: the same number in the window before was another', async () => {
    const said = [
      [2, 8],
      [12, 18],
    ] as const;
    const { turns, speakers } = await turnsOf(said, [1, -1]);
    expect(speakers).toBe(1);
    expect(turns).toMatchObject([{ startSeconds: 0.225, endSeconds: 0.825 }]);
    expect((await turnsOf(said, [1, 0])).turns).toMatchObject([{ speaker: 0 }, { speaker: 1 }]);
  });
});
