import { describe, expect, it } from 'vitest';
import { collect } from '../../test/helpers/collect.ts';
import { recording } from '../../test/helpers/fake-models.ts';
import { shardedPartsOf } from '../../test/helpers/fake-parts.ts';
import { assemble, type SpeakerRequest, turnsAlone } from './assemble.ts';
import type { Plda } from './clustering/plda.ts';
import { type Diarization, writeOutput } from './diarization.ts';
import { type SettingName, settingsOf, withTuning } from './parameters.ts';

const TALK = recording([
  [[], 0.5],
  [[2], 6],
  [[], 1],
  [[1], 5],
  [[1, 2], 1],
  [[2], 4],
  [[], 12],
  [[3], 8],
  [[1], 7.26],
]);

const PLDA: Plda = {
  embedding: 'fake-embedder',
  inputs: 12,
  outputs: 12,
  mean: new Float64Array(12),
  offset: new Float64Array(12),
  transform: Float64Array.from({ length: 144 }, (_, at) => (at % 13 === 0 ? 3 : 0)),
  phi: new Float64Array(12).fill(4),
};

async function diarize(
  samples: Float32Array,
  request: SpeakerRequest = {},
  name: SettingName = 'precision-2',
  shardSeconds = 300,
): Promise<Diarization> {
  const parts = await shardedPartsOf(samples, name, shardSeconds);
  const result = await assemble(parts, { totalSamples: samples.length }, settingsOf(name), request);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

const summaryOf = (turns: readonly { speaker: number; startSeconds: number; endSeconds: number }[]) =>
  turns.map(({ speaker, startSeconds, endSeconds }) => `${speaker} ${startSeconds}-${endSeconds}`);

describe('assemble', () => {
  it.each(['precision-2', 'community-1'] as const)('%s: finds the speakers and their turns', async (name) => {
    const diarization = await diarize(TALK, {}, name);
    expect(diarization.speakers).toBe(3);
    expect(diarization.warning).toBeUndefined();
    expect(summaryOf(diarization.turns)).toEqual([
      '0 0.5-6.5',
      '1 7.5-13.5',
      '0 12.5-17.5',
      '2 29.5-37.44',
      '1 37.44-44.76',
    ]);
  });

  it('returns exclusive turns that cover all speech without overlap', async () => {
    const { turns, exclusiveTurns } = await diarize(TALK);
    for (let index = 1; index < exclusiveTurns.length; index++) {
      expect(exclusiveTurns[index].startSeconds).toBeGreaterThanOrEqual(exclusiveTurns[index - 1].endSeconds);
    }
    const spoken = exclusiveTurns.reduce((sum, turn) => sum + turn.endSeconds - turn.startSeconds, 0);
    expect(spoken).toBeCloseTo(31.26, 6);
    expect(turns.length).toBeGreaterThan(0);
  });

  it('returns the same document, byte for byte, for any shard length', async () => {
    const flags = {
      exclusive: true,
      confidence: true,
      turnLevelConfidence: true,
      speechProbability: true,
      crosstalkProbability: true,
      speakerProbability: true,
    };
    const document = async (shardSeconds: number) =>
      (await collect(writeOutput(await diarize(TALK, {}, 'precision-2', shardSeconds), flags))).join('');
    const whole = await document(300);
    expect(await document(300)).toBe(whole);
    expect(await document(10)).toBe(whole);
    expect(await document(20)).toBe(whole);
  });

  it('ends no turn after the recording if its length at 16 kHz is rounded up', async () => {
    const samples = recording([
      [[], 1],
      [[1], 9],
    ]);
    const parts = await shardedPartsOf(samples, 'precision-2');
    const audio = { totalSamples: samples.length, durationSeconds: 440_999 / 44_100 };
    const result = await assemble(parts, audio, settingsOf('precision-2'), {});
    if (!result.ok) throw new Error(result.error.message);
    expect(result.value.turns.at(-1)?.endSeconds).toBe(9.999);
    expect(result.value.exclusiveTurns.at(-1)?.endSeconds).toBe(9.999);
    expect(result.value.durationSeconds).toBe(440_999 / 44_100);
  });

  it('fails with no_speech for silence and for an empty recording', async () => {
    for (const samples of [new Float32Array(20 * 16000), new Float32Array(0)]) {
      const parts = await shardedPartsOf(samples, 'precision-2');
      const result = await assemble(parts, { totalSamples: samples.length }, settingsOf('precision-2'), {});
      expect(result).toEqual({
        ok: false,
        error: { kind: 'no_speech', message: 'The recording has no speech.', loudestDb: -126 },
      });
    }
  });

  it('finds all short turns if they outnumber the items of the clustering', async () => {
    const remarks = Array.from({ length: 24 }, (_, index): [number[], number][] => [
      [[], 10],
      [[1 + (index % 2)], 0.8],
    ]);
    const samples = recording(remarks.flat());
    const parts = await shardedPartsOf(samples, 'precision-2', 60);
    const few = withTuning(settingsOf('precision-2'), { 'precision-2': { clustering: { maxItems: 12 } } });
    const result = await assemble(parts, { totalSamples: samples.length }, few, {});
    if (!result.ok) throw new Error(result.error.message);
    expect(result.value.turns).toHaveLength(24);
  });

  it('finds half a second of speech in silence', async () => {
    const diarization = await diarize(
      recording([
        [[], 3],
        [[4], 0.5],
        [[], 20],
      ]),
    );
    expect(summaryOf(diarization.turns)).toEqual(['0 3-3.5']);
  });

  it('keeps turns inside a recording whose length is not a whole number of milliseconds', async () => {
    const samples = recording([[[1], 2]]).subarray(0, 31999);
    const { turns, durationSeconds } = await diarize(samples);
    expect(summaryOf(turns)).toEqual(['0 0-1.999']);
    expect(turns[0].endSeconds).toBeLessThanOrEqual(durationSeconds);
  });

  it('gives clear turns a high confidence and returns tracks of 20 ms', async () => {
    const { turns, tracks } = await diarize(TALK);
    expect(tracks.resolutionSeconds).toBe(0.02);
    expect(tracks.confidence.length).toBe(Math.ceil(TALK.length / 320));
    expect(tracks.speakers.map((track) => track instanceof Uint8Array && track.length)).toEqual(
      Array(3).fill(tracks.confidence.length),
    );
    // 3 s: speaker 0 alone; 13 s: two at once; 20 s: silence.
    expect([tracks.speech[150], tracks.crosstalk[150]].map((byte) => byte > 128)).toEqual([true, false]);
    expect([tracks.speech[650], tracks.crosstalk[650]].map((byte) => byte > 128)).toEqual([true, true]);
    expect([tracks.speech[1000], tracks.crosstalk[1000]].map((byte) => byte > 128)).toEqual([false, false]);
    for (const turn of turns) {
      expect(turn.confidence.length).toBe(3);
      expect(turn.confidence[turn.speaker]).toBeGreaterThan(75);
    }
  });

  it('omits the tracks of the speakers on request', async () => {
    const parts = await shardedPartsOf(TALK, 'community-1');
    const audio = { totalSamples: TALK.length };
    const result = await assemble(parts, audio, settingsOf('community-1'), {}, { speakerTracks: false });
    expect(result.ok && result.value.tracks.speakers).toEqual([]);
    expect(result.ok && result.value.tracks.confidence.length).toBe(2238);
  });

  describe('the number of speakers', () => {
    it.each([
      [{ numSpeakers: 1 }, 1],
      [{ numSpeakers: 2 }, 2],
      [{ numSpeakers: 3 }, 3],
      [{ maxSpeakers: 2 }, 2],
      [{ maxSpeakers: 5 }, 3],
      [{ minSpeakers: 2 }, 3],
      [{ minSpeakers: 5 }, 5],
      [{ numSpeakers: 6 }, 6],
      [{ minSpeakers: 4, maxSpeakers: 4 }, 4],
    ])('follows the request: %o gives %i', async (request, speakers) => {
      const diarization = await diarize(TALK, request);
      expect(new Set(diarization.turns.map(({ speaker }) => speaker)).size).toBe(speakers);
      expect(diarization.speakers).toBe(speakers);
      expect(diarization.warning).toBeUndefined();
    });

    it('causes a warning if there is too little speech for it', async () => {
      const diarization = await diarize(recording([[[1], 2]]), { numSpeakers: 4 });
      expect(diarization.speakers).toBe(1);
      expect(diarization.warning).toMatch(/4 speakers were requested.*only 1/);
      const atLeast = await diarize(recording([[[1], 2]]), { minSpeakers: 2 });
      expect(atLeast.warning).toMatch(/at least 2 speakers/);
    });

    it('is reached even if some speakers are outvoted in every frame', async () => {
      const samples = recording([
        [[1], 4],
        [[], 0.5],
        [[2], 4],
      ]);
      const parts = await shardedPartsOf(samples, 'precision-2');
      const found: number[] = [];
      for (const numSpeakers of [1, 2, 3, 4, 5, 6]) {
        const settings = settingsOf('precision-2');
        const options = { pldaOf: async () => PLDA };
        const result = await assemble(parts, { totalSamples: samples.length }, settings, { numSpeakers }, options);
        found.push(result.ok ? new Set(result.value.turns.map(({ speaker }) => speaker)).size : 0);
      }
      expect(found).toEqual([1, 2, 3, 4, 5, 6]);
    });

    it('is at most 100, with a warning', async () => {
      const { speakers, warning } = await diarize(TALK, { numSpeakers: 1_000_000 });
      expect(speakers).toBeLessThanOrEqual(100);
      expect(warning).toMatch(/^1000000 speakers were requested; at most 100 can be distinguished, \d+ were found\.$/);
    });

    it('equals the number of labels, which are numbered by first appearance', async () => {
      const { turns } = await diarize(TALK, { numSpeakers: 5 });
      const seen = new Set<number>();
      for (const { speaker } of turns) {
        expect(speaker).toBeLessThanOrEqual(seen.size);
        seen.add(speaker);
      }
    });
  });

  it('finds a speaker with little speech if an hour of silence follows', async () => {
    const talk: Parameters<typeof recording>[0] = [
      [[1], 20],
      [[2], 20],
      [[1], 22],
      [[3], 4],
      [[2], 20],
    ];
    const settings = settingsOf('precision-2');
    const speakersOf = async (silentSeconds: number) => {
      const samples = recording([...talk, [[], silentSeconds]]);
      const parts = await shardedPartsOf(samples, 'precision-2');
      const result = await assemble(
        parts,
        { totalSamples: samples.length },
        settings,
        {},
        { pldaOf: async () => PLDA },
      );
      return result.ok && result.value.speakers;
    };
    const withoutSilence = await speakersOf(1);
    expect(withoutSilence).toBeGreaterThanOrEqual(3);
    expect(await speakersOf(3600)).toBe(withoutSilence);
  }, 60_000);

  describe('with a PLDA', () => {
    const ALTERNATING = Array.from({ length: 6 }, (): [number[], number][] => [
      [[1], 4],
      [[2], 4],
    ]).flat();
    const SAMPLES = recording([...ALTERNATING, [[], 12], [[3], 24]]);
    async function diarizeWithPlda(
      samples: Float32Array,
      settings = settingsOf('precision-2'),
      request: SpeakerRequest = {},
    ) {
      const parts = await shardedPartsOf(samples, 'precision-2', 20);
      const options = { pldaOf: async () => PLDA, voices: true };
      const result = await assemble(parts, { totalSamples: samples.length }, settings, request, options);
      if (!result.ok) throw new Error(result.error.message);
      return result.value;
    }

    it.each([
      [{ minSpeakers: 3 }, 3],
      [{ maxSpeakers: 1 }, 1],
      [{ numSpeakers: 2 }, 2],
      [{ numSpeakers: 4 }, 4],
    ])('finds the requested number: %o gives %i', async (request, speakers) => {
      expect((await diarizeWithPlda(SAMPLES, settingsOf('precision-2'), request)).speakers).toBe(speakers);
      expect((await diarizeWithPlda(TALK, settingsOf('precision-2'), request)).speakers).toBe(speakers);
    });
  });

  it('rejects parts of different models or with gaps', async () => {
    const parts = await shardedPartsOf(TALK, 'precision-2', 10);
    const swapped = { ...parts, readEmbeddings: (index: number) => parts.readEmbeddings(index === 1 ? 2 : index) };
    const audio = { totalSamples: TALK.length };
    await expect(assemble(swapped, audio, settingsOf('precision-2'), {})).rejects.toThrow(/follow/);
    for (const other of [{ segmentationId: 'next' }, { embeddingId: 'next' }, { stepSamples: 40000 }]) {
      const readEmbeddings = async (index: number) => {
        const part = await parts.readEmbeddings(index);
        return index === 1 ? { ...part, facts: { ...part.facts, ...other } } : part;
      };
      const mixed = assemble({ ...parts, readEmbeddings }, audio, settingsOf('precision-2'), {});
      await expect(mixed).rejects.toThrow(/different models/);
    }
    const fewer = { ...parts, count: 2 };
    await expect(assemble(fewer, audio, settingsOf('precision-2'), {})).rejects.toThrow(/windows/);
  });
});

const turn = (speaker: number, startSeconds: number, endSeconds: number) => ({ speaker, startSeconds, endSeconds });

it('turnsAlone leaves out overlapped speech', () => {
  const turns = [turn(0, 0, 4), turn(1, 3, 6), turn(0, 5, 5.5), turn(2, 8, 9)];
  expect(turnsAlone(turns)).toEqual([turn(0, 0, 3), turn(1, 4, 5), turn(1, 5.5, 6), turn(2, 8, 9)]);
});

it('turnsAlone returns nothing if all speech overlaps', () => {
  expect(turnsAlone([])).toEqual([]);
  expect(turnsAlone([turn(0, 1, 2), turn(1, 1, 2)])).toEqual([]);
});

it('turnsAlone agrees with the number of speakers in each tenth of a second', () => {
  let seed = 11;
  const random = (limit: number) => {
    seed = (seed * 16807) % 2147483647;
    return seed % limit;
  };
  const turns = Array.from({ length: 60 }, () => {
    const start = random(400);
    return turn(random(4), start / 10, (start + 1 + random(30)) / 10);
  }).sort((a, b) => a.startSeconds - b.startSeconds || a.speaker - b.speaker);
  const alone = turnsAlone(turns);
  const at = (list: typeof turns, tenth: number) =>
    list.filter((t) => t.startSeconds * 10 <= tenth + 0.5 && tenth + 0.5 < t.endSeconds * 10);
  for (let tenth = 0; tenth < 430; tenth++) {
    const talking = at(turns, tenth);
    expect(at(alone, tenth).map((t) => t.speaker)).toEqual(talking.length === 1 ? [talking[0].speaker] : []);
  }
});
