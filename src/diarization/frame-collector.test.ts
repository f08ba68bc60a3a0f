import { describe, expect, it } from 'vitest';
import { collect } from '../../test/helpers/collect.ts';
import type { SpeakerTrack } from './diarization.ts';
import {
  calibrate,
  decisionProbability,
  FrameCollector,
  FrameTrackWriter,
  releaseTracks,
  type TrackSpill,
} from './frame-collector.ts';
import { settingsOf } from './parameters.ts';
import type { ModelFacts } from './part.ts';

const FRAME_SAMPLES = 320;

/** Exclusive turns in frames. @param active clusters of each frame, the most active first */
async function exclusiveOf(active: readonly (readonly number[])[]): Promise<string[]> {
  const totalSamples = active.length * FRAME_SAMPLES;
  const collector = new FrameCollector(
    {
      facts: { frameShiftSamples: FRAME_SAMPLES, frameSizeSamples: FRAME_SAMPLES } as ModelFacts,
      settings: settingsOf('precision-2'),
      clusters: 2,
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

it('exclusive turns cover all speech if two speakers are about equally active', async () => {
  const flickering = Array.from({ length: 150 }, (_, frame) => (Math.floor(frame / 4) % 2 ? [1, 0] : [0, 1]));
  expect(await exclusiveOf([...of(50, 0), ...flickering])).toEqual(['0 0-200']);
});

it('an exclusive turn ends after five frames of another leader, or in silence of its speaker', async () => {
  expect(await exclusiveOf([...of(50, 0), ...of(50, 1, 0)])).toEqual(['0 0-54', '1 54-100']);
  expect(await exclusiveOf([...of(50, 0), ...of(3, 1, 0), ...of(47, 1)])).toEqual(['0 0-53', '1 53-100']);
  expect(await exclusiveOf([...of(50, 1), ...of(20), ...of(50, 0)])).toEqual(['1 0-50', '0 70-120']);
});

const CLUSTERS = 50;
/** A little more than two blocks of 50 speakers: an hour. */
const FRAMES = 170_000;
const TIMES = { shiftSamples: 320, offsetSamples: 0, totalSamples: 320 * FRAMES };

async function tracksOf(spill?: TrackSpill): Promise<readonly SpeakerTrack[]> {
  const writer = new FrameTrackWriter(TIMES, FRAMES, CLUSTERS, spill);
  const speakers = new Float32Array(CLUSTERS);
  for (let frame = 0; frame < FRAMES; frame++) {
    for (let cluster = 0; cluster < CLUSTERS; cluster++) speakers[cluster] = ((frame * 7 + cluster * 13) % 251) / 255;
    writer.write(frame, 1, 1, 0, speakers);
    if (frame % 15_000 === 0) await writer.flush();
  }
  return (await writer.finish([3, 41])).speakers;
}

describe('FrameTrackWriter', () => {
  it('stores the tracks of many speakers in blocks that read back as the same bytes', async () => {
    const stored = new Map<number, Uint8Array>();
    const written: Uint8Array[] = [];
    let largest = 0;
    const spilled = await tracksOf({
      write: async (block, bytes) => {
        stored.set(block, bytes.slice());
        written.push(bytes);
        largest = Math.max(largest, bytes.length);
      },
      read: async (block, offset, length) => stored.get(block)!.subarray(offset, offset + length),
    });
    const kept = await tracksOf();
    expect([...stored.keys()]).toEqual([0, 1, 2]);
    expect(largest).toBeLessThanOrEqual(4 * 1024 * 1024);
    // A day has dozens of blocks, which would fill the isolate if they were not released.
    expect(written.map(({ length }) => length)).toEqual([0, 0, 0]);
    for (const [speaker, track] of kept.entries()) {
      const inBlocks = spilled[speaker];
      if (!(track instanceof Uint8Array) || inBlocks instanceof Uint8Array)
        throw new Error('the wrong track was stored in blocks');
      const joined = Buffer.concat(await collect(inBlocks.blocks()));
      expect(joined.equals(track)).toBe(true);
    }
  });

  it('releaseTracks frees the tracks of several speakers, which share a buffer', async () => {
    const writer = new FrameTrackWriter({ ...TIMES, totalSamples: 3200 }, 10, 3);
    const tracks = await writer.finish([0, 1, 2]);
    releaseTracks(tracks);
    expect(tracks.speakers.map((track) => (track as Uint8Array).length)).toEqual([0, 0, 0]);
    expect(tracks.speech).toHaveLength(0);
    releaseTracks(tracks);
  });

  it('keeps the tracks of short recordings in memory', async () => {
    const none: TrackSpill = {
      write: () => Promise.reject(new Error('no')),
      read: () => Promise.reject(new Error('no')),
    };
    const writer = new FrameTrackWriter({ ...TIMES, totalSamples: 3200 }, 10, 2, none);
    const { speakers } = await writer.finish([0]);
    expect(speakers).toEqual([new Uint8Array(10)]);
  });
});

describe('decisionProbability', () => {
  it('is the product over all speakers', () => {
    expect(decisionProbability([0.9, 0.2], [1, 0])).toBeCloseTo(0.9 * 0.8);
    expect(decisionProbability([0.9, 0.2], [1, 1])).toBeCloseTo(0.9 * 0.2);
    expect(decisionProbability([], [])).toBe(1);
  });
});

describe('calibrate', () => {
  it('is the identity for slope 1 and offset 0, and stays between 0 and 1', () => {
    for (const raw of [0.01, 0.3, 0.5, 0.99]) expect(calibrate(raw, { slope: 1, offset: 0 })).toBeCloseTo(raw, 9);
    for (const raw of [0, 1, -0.1, 1.0001]) {
      const value = calibrate(raw, { slope: 1, offset: 0 });
      expect(value).toBeGreaterThan(0);
      expect(value).toBeLessThan(1);
    }
  });

  it('keeps the order of the values', () => {
    const values = [0.1, 0.4, 0.6, 0.9].map((raw) => calibrate(raw, { slope: 0.4, offset: 1 }));
    expect([...values].sort((a, b) => a - b)).toEqual(values);
  });
});
