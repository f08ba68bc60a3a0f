import { describe, expect, it } from 'vitest';
import { collect } from '../../test/helpers/collect.ts';
import type { SpeakerTrack } from './diarization.ts';
import { FrameTrackWriter, releaseTracks, type TrackSpill } from './tracks.ts';

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
  it('puts the tracks of many speakers down in blocks that read as the same bytes', async () => {
    const stored = new Map<number, Uint8Array>();
    const given: Uint8Array[] = [];
    let largest = 0;
    const spilled = await tracksOf({
      write: async (block, bytes) => {
        stored.set(block, bytes.slice());
        given.push(bytes);
        largest = Math.max(largest, bytes.length);
      },
      read: async (block, offset, length) => stored.get(block)!.subarray(offset, offset + length),
    });
    const kept = await tracksOf();
    expect([...stored.keys()]).toEqual([0, 1, 2]);
    expect(largest).toBeLessThanOrEqual(4 * 1024 * 1024);
    // A day has dozens of them: as garbage they would fill the isolate.
    expect(given.map(({ length }) => length)).toEqual([0, 0, 0]);
    for (const [speaker, track] of kept.entries()) {
      const there = spilled[speaker];
      if (!(track instanceof Uint8Array) || there instanceof Uint8Array) throw new Error('the wrong one was put down');
      const joined = Buffer.concat(await collect(there.blocks()));
      expect(joined.equals(track)).toBe(true);
    }
  });

  it('gives back the tracks of several speakers, which share a buffer: jobs with them failed where two were joined', async () => {
    const writer = new FrameTrackWriter({ ...TIMES, totalSamples: 3200 }, 10, 3);
    const tracks = await writer.finish([0, 1, 2]);
    releaseTracks(tracks);
    expect(tracks.speakers.map((track) => (track as Uint8Array).length)).toEqual([0, 0, 0]);
    expect(tracks.speech).toHaveLength(0);
    releaseTracks(tracks);
  });

  it('leaves those of short recordings in memory', async () => {
    const none: TrackSpill = {
      write: () => Promise.reject(new Error('no')),
      read: () => Promise.reject(new Error('no')),
    };
    const writer = new FrameTrackWriter({ ...TIMES, totalSamples: 3200 }, 10, 2, none);
    const { speakers } = await writer.finish([0]);
    expect(speakers).toEqual([new Uint8Array(10)]);
  });
});
