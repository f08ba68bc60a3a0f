import { describe, expect, it } from 'vitest';
import { assignSpeakers } from './clustering/cluster.ts';
import type { ClusterModel } from './clustering/types.ts';
import { settingsOf } from './parameters.ts';
import type { ModelFacts, ShardPart } from './part.ts';
import { type Reconstruction, reconstruct } from './reconstruct.ts';
import { reconstructWanted } from './reconstruct-wanted.ts';

const WINDOW_SAMPLES = 16_000;
const FRAMES = 10;
const CLASSES = 3;

/** A local speaker, heard where one subsegment counts; embeddings are directions in a plane. */
interface Local {
  readonly degrees: number;
  /** Of 255, in frames 2 to 6 of the window. */
  readonly bytes: number;
}

/** @param windows the local speakers of each @param subsegments direction of each, by number */
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
      const said = locals.map(({ bytes }) => (frame >= 2 && frame < 7 ? bytes : 0));
      probabilities.set([255 - said.reduce((sum, bytes) => sum + bytes, 0), ...said], at);
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

/** Speakers in these directions. */
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

/** Of a recording of one part, with the speakers in these directions, all of whom are wanted. */
function found(
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
  return reconstructWanted(parts, model.clusters, model, pause, contextOf(part()), maxCost);
}

/** Who has each turn. */
async function heard(part: () => ShardPart, speakers: readonly number[], maxCost?: number): Promise<readonly number[]> {
  const { diarization, clusterOf } = await found(part, speakers, { maxCost });
  return diarization.turns.map(({ speaker }) => clusterOf[speaker]!);
}

describe('reconstructWanted', () => {
  it('gives who is outvoted more weight, by what one window hears faintly, where there is no subsegment to claim', async () => {
    // Where both windows see the middle, one is sure of somebody else and the other nearly.
    const sure: Local[] = [{ degrees: 0, bytes: 255 }];
    const nearly: Local[] = [
      { degrees: 0, bytes: 245 },
      { degrees: 90, bytes: 10 },
    ];
    expect(await heard(() => partOf([sure, nearly], new Map(), 1600), [0, 90])).toContain(1);
    expect(await heard(() => partOf([sure, sure], new Map(), 1600), [0, 90])).toEqual([0]);
  });

  it('claims a subsegment where only few runs can be afforded: they were all spent on more weight, which does not help', async () => {
    // Somewhere it sounds a little like the other one, and yet more like who is heard.
    const windows = [0, 0, 0].map((degrees) => [{ degrees, bytes: 255 }]);
    const subsegments = new Map([0, 15, 0].map((degrees, window) => [2 * window + 1, degrees]));
    const part = () => partOf(windows, subsegments, WINDOW_SAMPLES);
    const oneRun = windows.length * (66 + 2);
    const withRuns = (runs: number) => heard(part, [0, 40], runs * oneRun);
    expect(await withRuns(1)).toEqual([0, 0, 0]);
    expect(await withRuns(3)).toEqual([0, 1, 0]);
  });

  it('lets who lost the only subsegment to a claim have another, four times', async () => {
    // Each of the first four would rather have the next one's only subsegment than any other; the last has two.
    const windows = [20, 40, 60, 180, 180].map((degrees) => [{ degrees, bytes: 255 }]);
    const subsegments = new Map([11, 31, 51, 180, 180].map((degrees, window) => [2 * window + 1, degrees]));
    const part = () => partOf(windows, subsegments, WINDOW_SAMPLES);
    expect(await heard(part, [0, 20, 40, 60, 180])).toEqual([0, 1, 2, 3, 4]);
    expect(await heard(part, [20, 40, 60, 180])).toEqual([0, 1, 2, 3, 3]);
  });

  it('claims no subsegment in silence, where a claim changes nothing', async () => {
    // Speaker 1's subsegments come first and are silent, except the last, which sounds more like speaker 0.
    const degrees = [0, 40, 40, 40, 40, 40, 0, 15, 0];
    const subsegments = new Map(degrees.map((angle, window) => [2 * window + 1, angle]));
    const inSilence = () =>
      partOf(
        degrees.map((angle) => (angle === 40 ? [] : [{ degrees: 0, bytes: 255 }])),
        subsegments,
        WINDOW_SAMPLES,
      );
    expect(await heard(inSilence, [0, 40])).toEqual([0, 0, 1, 0]);
  });

  it('pauses every some ten milliseconds where there are many speakers, and finds the same: a part held an isolate for a quarter of a second', async () => {
    const speakers = Array.from({ length: 90 }, (_, index) => 4 * index);
    const windows = Array.from({ length: 120 }, (_, window) => [
      { degrees: 100 * window, bytes: 200 },
      { degrees: 40 * window, bytes: 50 },
    ]);
    const subsegments = new Map(windows.map(([{ degrees }], window) => [Math.round(1.4 * window + 0.9), degrees]));
    const part = () => partOf(windows, subsegments, 11_200);
    let pauses = 0;
    const inStretches = await found(part, speakers, {
      maxCost: 1,
      pause: async () => {
        pauses++;
      },
    });
    expect(pauses).toBe(6);
    const model = modelOf(speakers);
    const whole = part();
    const assignment = assignSpeakers(model, whole.speakers);
    const atOnce = await reconstruct((take) => take({ ...whole, frames: whole, assignment }), {
      ...contextOf(whole),
      model,
      clusters: 90,
      boost: new Float32Array(90).fill(1),
    });
    expect(atOnce.diarization.turns.length).toBeGreaterThan(10);
    expect(inStretches).toEqual(atOnce);
  });
});
