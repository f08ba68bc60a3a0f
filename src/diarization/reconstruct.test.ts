import { describe, expect, it } from 'vitest';
import { assignSpeakers, type ClusterModel } from './clustering/cluster.ts';
import type { Reconstruction } from './frame-collector.ts';
import { settingsOf } from './parameters.ts';
import type { ModelFacts, ShardPart } from './part.ts';
import { type AssignedPart, bestRound, reconstruct, reconstructAtLeast } from './reconstruct.ts';

/** Adjacent windows of ten frames. A frame is longer than the frame shift, as in real models. */
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

/**
 * @param spans frames [from, to) in which the first local speaker talks
 * @param clusters cluster of that local speaker in each window, −1 for none
 */
async function turnsOf(spans: readonly (readonly [number, number])[], clusters: readonly number[]) {
  const probabilities = new Uint8Array(clusters.length * FACTS.framesPerWindow * FACTS.classes);
  for (let at = 0; at < probabilities.length; at += FACTS.classes) {
    const frame = at / FACTS.classes;
    probabilities[at + (spans.some(([from, to]) => frame >= from && frame < to) ? 1 : 0)] = 255;
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
  it('starts and ends turns halfway between the centres of two frames', async () => {
    const { turns, exclusiveTurns } = await turnsOf([[2, 5]], [0]);
    expect(turns).toMatchObject([{ startSeconds: 0.225, endSeconds: 0.525 }]);
    expect(exclusiveTurns).toMatchObject([{ startSeconds: 0.225, endSeconds: 0.525 }]);
  });

  it('aligns the tracks with the turns', async () => {
    const { speech } = (await turnsOf([[2, 5]], [0])).tracks;
    // Frames of 20 ms: the first centred after 0.225 s, and the first centred after 0.525 s.
    expect([speech.indexOf(255), speech.lastIndexOf(255) + 1]).toEqual([11, 26]);
  });

  it('assigns the speech of a local speaker without an embedding to no speaker', async () => {
    const spans = [
      [2, 8],
      [12, 18],
    ] as const;
    const { turns, speakers } = await turnsOf(spans, [1, -1]);
    expect(speakers).toBe(1);
    expect(turns).toMatchObject([{ startSeconds: 0.225, endSeconds: 0.825 }]);
    expect((await turnsOf(spans, [1, 0])).turns).toMatchObject([{ speaker: 0 }, { speaker: 1 }]);
  });
});

/** Runs `bestRound` with round numbers as settings. @param scores score of each round */
async function search(scores: readonly number[], enoughScore: number) {
  const runs: number[] = [];
  const dropped: number[] = [];
  const result = await bestRound(0, {
    enoughScore,
    maxRounds: scores.length,
    run: async (settings) => {
      runs.push(settings);
      return scores[settings];
    },
    scoreOf: (score) => score,
    next: async (settings) => settings + 1,
    drop: (score) => void dropped.push(score),
  });
  // Every result but the last is dropped, in order.
  expect(dropped).toEqual(runs.slice(0, -1).map((settings) => scores[settings]));
  return { result, runs };
}

it('bestRound returns the first result with enough score', async () => {
  expect(await search([1, 3, 5, 4], 5)).toEqual({ result: 5, runs: [0, 1, 2] });
  expect(await search([2], 1)).toEqual({ result: 2, runs: [0] });
});

it('bestRound runs the best round again if none has enough score', async () => {
  expect(await search([18, 18, 16, 15, 24, 27, 26, 26], 30)).toEqual({ result: 27, runs: [0, 1, 2, 3, 4, 5, 6, 7, 5] });
});

it('bestRound returns the last round if it has the highest score', async () => {
  expect(await search([18, 27, 27], 30)).toEqual({ result: 27, runs: [0, 1, 2] });
});

const WINDOW_SAMPLES = 16_000;
const FRAMES = 10;
const CLASSES = 3;

/** A local speaker who talks in frames 2 to 6 of a window; embeddings are directions in a plane. */
interface Local {
  readonly degrees: number;
  /** Probability, 255 for certainty. */
  readonly bytes: number;
}

/** @param windows local speakers of each window @param subsegments direction of each subsegment by its index */
function partOf(
  windows: readonly (readonly Local[])[],
  subsegments: ReadonlyMap<number, number>,
  stepSamples: number,
): ShardPart {
  const facts: ModelFacts = {
    segmentationId: 's',
    embeddingId: 'e',
    windowSamples: WINDOW_SAMPLES,
    stepSamples,
    maxLocalSpeakers: 2,
    maxSimultaneous: 1,
    classes: CLASSES,
    frameShiftSamples: WINDOW_SAMPLES / FRAMES,
    frameSizeSamples: WINDOW_SAMPLES / FRAMES,
    framesPerWindow: FRAMES,
    dimension: 2,
    tuned: [],
  };
  const probabilities = new Uint8Array(windows.length * FRAMES * CLASSES);
  for (const [window, locals] of windows.entries()) {
    for (let frame = 0; frame < FRAMES; frame++) {
      const at = (window * FRAMES + frame) * CLASSES;
      const active = locals.map(({ bytes }) => (frame >= 2 && frame < 7 ? bytes : 0));
      probabilities.set([255 - active.reduce((sum, bytes) => sum + bytes, 0), ...active], at);
    }
  }
  const rows = windows.flatMap((locals, window) => locals.map(({ degrees }, local) => ({ window, local, degrees })));
  const seconds = new Float32Array(rows.length).fill(0.5);
  return {
    facts,
    firstWindow: 0,
    windowCount: windows.length,
    probabilities,
    loudestDb: -20,
    speakers: {
      count: rows.length,
      dimension: 2,
      embeddings: directions(rows.map(({ degrees }) => degrees)),
      windows: Int32Array.from(rows, ({ window }) => window),
      locals: Uint8Array.from(rows, ({ local }) => local),
      cleanSeconds: seconds,
      activeSeconds: seconds,
    },
    subsegments: {
      count: subsegments.size,
      dimension: 2,
      indices: Int32Array.from(subsegments.keys()),
      embeddings: directions([...subsegments.values()]),
    },
  };
}

const directions = (degrees: readonly number[]): Float32Array =>
  Float32Array.from(degrees.flatMap((angle) => [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)]));

/** A model with speakers in the given directions, in degrees. */
const modelOf = (speakers: readonly number[]): ClusterModel => ({
  clusters: speakers.length,
  dimension: 2,
  shift: new Float32Array(2),
  centroids: directions(speakers),
  temperature: 0.1,
});

const contextOf = ({ facts, windowCount }: ShardPart) => {
  const totalSamples = (windowCount - 1) * facts.stepSamples + WINDOW_SAMPLES;
  const settings = settingsOf('precision-2');
  return { facts, settings, totalSamples, durationSeconds: totalSamples / 16_000, speakerTracks: true };
};

/** Reconstructs a recording of one part, with all speakers requested. */
function reconstructAll(
  part: () => ShardPart,
  directionsOfSpeakers: readonly number[],
  options: { readonly maxCost?: number; readonly pause?: () => Promise<void> } = {},
): Promise<Reconstruction> {
  const model = modelOf(directionsOfSpeakers);
  const { facts, speakers: rows, subsegments } = part();
  const parts = {
    count: 1,
    factsOf: () => facts,
    countsOf: () => ({ speakers: rows.count, subsegments: subsegments.count }),
    readEmbeddings: async () => part(),
    readPart: async () => part(),
  };
  const { maxCost, pause = async () => undefined } = options;
  return reconstructAtLeast(parts, model.clusters, model, pause, contextOf(part()), maxCost);
}

/** Index of the speaker's direction for each turn. */
async function directionsOfTurns(
  part: () => ShardPart,
  speakers: readonly number[],
  maxCost?: number,
): Promise<readonly number[]> {
  const { diarization, clusterOf } = await reconstructAll(part, speakers, { maxCost });
  return diarization.turns.map(({ speaker }) => clusterOf[speaker]!);
}

describe('reconstructAtLeast', () => {
  it('raises the weight of an outvoted speaker if there is no subsegment to force', async () => {
    // In the overlap one window has speaker 0 alone, the other gives speaker 1 a small probability.
    const certain: Local[] = [{ degrees: 0, bytes: 255 }];
    const uncertain: Local[] = [
      { degrees: 0, bytes: 245 },
      { degrees: 90, bytes: 10 },
    ];
    expect(await directionsOfTurns(() => partOf([certain, uncertain], new Map(), 1600), [0, 90])).toContain(1);
    expect(await directionsOfTurns(() => partOf([certain, certain], new Map(), 1600), [0, 90])).toEqual([0]);
  });

  it('forces a subsegment if the cost allows only a few runs', async () => {
    // The middle subsegment turns towards the second speaker, but is closer to the first.
    const windows = [0, 0, 0].map((degrees) => [{ degrees, bytes: 255 }]);
    const subsegments = new Map([0, 15, 0].map((degrees, window) => [2 * window + 1, degrees]));
    const part = () => partOf(windows, subsegments, WINDOW_SAMPLES);
    const oneRun = windows.length * (66 + 2);
    const withRuns = (runs: number) => directionsOfTurns(part, [0, 40], runs * oneRun);
    expect(await withRuns(1)).toEqual([0, 0, 0]);
    expect(await withRuns(3)).toEqual([0, 1, 0]);
  });

  it('forces another subsegment for a speaker who lost the only one, up to four times', async () => {
    // The best subsegment for each of the first four is the next one's only subsegment; the last has two.
    const windows = [20, 40, 60, 180, 180].map((degrees) => [{ degrees, bytes: 255 }]);
    const subsegments = new Map([11, 31, 51, 180, 180].map((degrees, window) => [2 * window + 1, degrees]));
    const part = () => partOf(windows, subsegments, WINDOW_SAMPLES);
    expect(await directionsOfTurns(part, [0, 20, 40, 60, 180])).toEqual([0, 1, 2, 3, 4]);
    expect(await directionsOfTurns(part, [20, 40, 60, 180])).toEqual([0, 1, 2, 3, 3]);
  });

  it('forces no subsegment in silence', async () => {
    // Speaker 1's subsegments come first and are silent, except the last, which sounds more like speaker 0.
    const degrees = [0, 40, 40, 40, 40, 40, 0, 15, 0];
    const subsegments = new Map(degrees.map((angle, window) => [2 * window + 1, angle]));
    const inSilence = () =>
      partOf(
        degrees.map((angle) => (angle === 40 ? [] : [{ degrees: 0, bytes: 255 }])),
        subsegments,
        WINDOW_SAMPLES,
      );
    expect(await directionsOfTurns(inSilence, [0, 40])).toEqual([0, 0, 1, 0]);
  });

  it('pauses between batches of windows and returns the result of a single batch', async () => {
    const speakers = Array.from({ length: 90 }, (_, index) => 4 * index);
    const windows = Array.from({ length: 120 }, (_, window) => [
      { degrees: 100 * window, bytes: 200 },
      { degrees: 40 * window, bytes: 50 },
    ]);
    const subsegments = new Map(windows.map(([{ degrees }], window) => [Math.round(1.4 * window + 0.9), degrees]));
    const part = () => partOf(windows, subsegments, 11_200);
    let pauses = 0;
    const inBatches = await reconstructAll(part, speakers, {
      maxCost: 1,
      pause: async () => {
        pauses++;
      },
    });
    expect(pauses).toBe(6);
    const model = modelOf(speakers);
    const whole = part();
    const assignment = assignSpeakers(model, whole.speakers);
    const inOneBatch = await reconstruct((take) => take({ ...whole, frames: whole, assignment }), {
      ...contextOf(whole),
      model,
      clusters: 90,
      boost: new Float32Array(90).fill(1),
    });
    expect(inOneBatch.diarization.turns.length).toBeGreaterThan(10);
    expect(inBatches).toEqual(inOneBatch);
  });
});
