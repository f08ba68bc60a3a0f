import { describe, expect, it } from 'vitest';
import type { ClusterModel } from './clustering/strategy.ts';
import { settingsOf } from './parameters.ts';
import type { ModelFacts, ShardPart } from './part.ts';
import { RunBudget, reconstructWanted } from './reconstruct-wanted.ts';

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
    levels: new Uint8Array(0),
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

/** Who has each turn, of the speakers in these directions, all of whom are wanted. */
async function heard(
  part: () => ShardPart,
  speakers: readonly number[],
  budget?: RunBudget,
): Promise<readonly number[]> {
  const model: ClusterModel = {
    clusters: speakers.length,
    dimension: 2,
    shift: new Float32Array(2),
    centroids: directions(speakers),
    temperature: 0.1,
  };
  const { facts, windowCount, speakers: rows, subsegments } = part();
  const totalSamples = (windowCount - 1) * facts.stepSamples + WINDOW_SAMPLES;
  const parts = {
    count: 1,
    factsOf: () => facts,
    countsOf: () => ({ speakers: rows.count, subsegments: subsegments.count }),
    readEmbeddings: async () => part(),
    readPart: async () => part(),
  };
  const context = {
    facts,
    settings: settingsOf('precision-2'),
    totalSamples,
    durationSeconds: totalSamples / 16_000,
    speakerTracks: false,
  };
  const { diarization, clusterOf } = await reconstructWanted(
    parts,
    speakers.length,
    model,
    async () => undefined,
    context,
    budget,
  );
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
    const withRuns = (runs: number) => heard(part, [0, 40], new RunBudget(runs * oneRun));
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
});
