import { expect, it } from 'vitest';
import { FrameCollector } from './frame-collector.ts';
import { settingsOf } from './parameters.ts';
import type { ModelFacts } from './part.ts';

const FRAME_SAMPLES = 320;

/** Exclusive turns in frames, of who is active in each frame, the most active first. */
async function exclusiveOf(active: readonly (readonly number[])[]): Promise<string[]> {
  const totalSamples = active.length * FRAME_SAMPLES;
  const collector = new FrameCollector(
    {
      facts: { frameShiftSamples: FRAME_SAMPLES, frameSizeSamples: FRAME_SAMPLES } as ModelFacts,
      settings: settingsOf('precision-2'),
      clusters: 2,
      boost: new Float32Array(2).fill(1),
      totalSamples,
      durationSeconds: totalSamples / 16_000,
      speakerTracks: false,
    },
    active.length,
  );
  active.forEach((speakers, frame) => {
    const tracks = Float32Array.of(1, 0, 0.5, 0.5);
    collector.take({ frame, active: speakers, activations: new Float32Array(2), tracks });
  });
  const { diarization, clusterOf } = await collector.finish();
  const frames = (seconds: number) => Math.round((seconds * 16_000) / FRAME_SAMPLES);
  return diarization.exclusiveTurns.map(
    ({ speaker, startSeconds, endSeconds }) => `${clusterOf[speaker]} ${frames(startSeconds)}-${frames(endSeconds)}`,
  );
}

const of = (frames: number, ...active: number[]) => Array.from({ length: frames }, () => active);

it('exclusive turns have all speech where two are as active as each other: runs of a few frames were lost', async () => {
  const flickering = Array.from({ length: 150 }, (_, frame) => (Math.floor(frame / 4) % 2 ? [1, 0] : [0, 1]));
  expect(await exclusiveOf([...of(50, 0), ...flickering])).toEqual(['0 0-200']);
});

it('an exclusive turn goes to who is the most active for longer, and at once where the other falls silent', async () => {
  expect(await exclusiveOf([...of(50, 0), ...of(50, 1, 0)])).toEqual(['0 0-54', '1 54-100']);
  expect(await exclusiveOf([...of(50, 0), ...of(3, 1, 0), ...of(47, 1)])).toEqual(['0 0-53', '1 53-100']);
  expect(await exclusiveOf([...of(50, 1), ...of(20), ...of(50, 0)])).toEqual(['1 0-50', '0 70-120']);
});
