import { describe, expect, it } from 'vitest';
import manifest from '../../models/manifest.json';
import { collect } from '../../test/helpers/collect.ts';
import type { Diarization, SpeakerVoice } from '../diarization/diarization.ts';
import { packInUse, parseManifest } from '../platform/onnx/manifest.ts';
import { logOddsOf, matchSpeakers, probabilityOf, turnConfidence, writeIdentification } from './identification.ts';

const unit = (...values: number[]): Float32Array => {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
};
const voice = (embedding: Float32Array, secondsAlone = 10): SpeakerVoice => ({
  embeddingId: 'e',
  embedding,
  secondsAlone,
});
const parameters = { slope: 2, offset: -0.5, noiseSeconds: 0 };

it('logOddsOf is linear in the cosine similarity', () => {
  const [a, b] = [voice(unit(1, 0)), voice(unit(1, 1))];
  const odds = logOddsOf([a], [a, b], parameters);
  expect(odds[0]).toBeCloseTo(2 - 0.5, 6);
  expect(odds[1]).toBeCloseTo(2 * Math.SQRT1_2 - 0.5, 6);
});

const noisy = { slope: 24, offset: -10, noiseSeconds: 1 };

it('logOddsOf is symmetric', () => {
  const [a, b] = [voice(unit(1, 0.2), 2), voice(unit(0.1, 1), 20)];
  expect(logOddsOf([a], [b], noisy)).toEqual(logOddsOf([b], [a], noisy));
});

describe('log-odds of short speech', () => {
  /** Log-odds of a cosine between voices of so many seconds. */
  const oddsOf = (cosine: number, secondsA: number, secondsB: number) =>
    logOddsOf([voice(unit(1, 0), secondsA)], [voice(unit(cosine, Math.sqrt(1 - cosine ** 2)), secondsB)], noisy)[0];

  it('scales the cosine by the reliability of both voices, and the offset by its square', () => {
    // Half of the variance of one second is noise, and a quarter of that of three.
    const reliability = Math.sqrt(0.5 * 0.75);
    expect(oddsOf(0.6, 1, 3)).toBeCloseTo(24 * 0.6 * reliability - 10 * reliability ** 2, 5);
  });

  it('requires a higher cosine of longer speech', () => {
    expect(oddsOf(0.36, 2, 2)).toBeGreaterThan(0);
    expect(oddsOf(0.36, 20, 20)).toBeLessThan(0);
  });

  it('are finite without any seconds alone', () => {
    expect(oddsOf(0.9, 0, 10)).toBe(oddsOf(0.9, 0.5, 10));
  });
});

it('logOddsOf of the shipped embedder identifies ten seconds across microphones', () => {
  const shipped = packInUse(parseManifest(manifest)).embedding.identification!;
  const confidenceOf = (cosine: number) =>
    100 * probabilityOf(logOddsOf([voice(unit(1, 0))], [voice(unit(cosine, Math.sqrt(1 - cosine ** 2)))], shipped)[0]);
  // Measured cosines of the same person with two microphones, and of different people.
  expect(confidenceOf(0.44)).toBeGreaterThan(60);
  expect(confidenceOf(0.16)).toBeLessThan(3);
});

it('orders voices that are all very dissimilar to a speaker', () => {
  const steep = { slope: 200, offset: 0, noiseSeconds: 0 };
  const [speaker, withoutSpeech] = [voice(unit(0, 1)), voice(new Float32Array(0), 0)];
  const others = [voice(unit(1, -0.9)), voice(unit(1, -0.3)), voice(unit(1, -0.5)), withoutSpeech];
  const odds = logOddsOf([speaker], others, steep);
  expect([...odds].every((value) => value < -12)).toBe(true);
  expect([...odds.keys()].sort((a, b) => odds[b] - odds[a])).toEqual([1, 2, 0, 3]);
  expect([...odds].map(probabilityOf).every(Number.isFinite)).toBe(true);
  for (const exclusive of [true, false])
    expect(matchSpeakers(odds, 1, others.length, { threshold: 0, exclusive })[0].match).toBe(1);
});

it('gives a speaker without an embedding a probability near 0', () => {
  const withoutSpeech = voice(new Float32Array(0), 0);
  expect(probabilityOf(logOddsOf([withoutSpeech], [voice(unit(1, 0))], parameters)[0])).toBeLessThan(0.001);
});

const logOdds = (...percents: number[]) => Float64Array.from(percents, (p) => Math.log(p / (100 - p)));
const matchesOf = (values: Float64Array, rows: number, columns: number, threshold: number, exclusive: boolean) =>
  matchSpeakers(values, rows, columns, { threshold, exclusive }).map(({ match }) => match);

describe('matching', () => {
  it('returns confidences as whole percents', () => {
    const [speaker] = matchSpeakers(logOdds(87.4, 20.6), 1, 2, { threshold: 0, exclusive: true });
    expect(speaker.confidence).toEqual([87, 21]);
  });

  it('gives each speaker the best voiceprint if a voiceprint may match several', () => {
    expect(matchesOf(logOdds(90, 10, 80, 70), 2, 2, 0, false)).toEqual([0, 0]);
  });

  it('finds the most likely one-to-one assignment', () => {
    // A greedy choice gives column 0 to the first and leaves the second with 1 %.
    expect(matchesOf(logOdds(90, 80, 85, 1), 2, 2, 0, true)).toEqual([1, 0]);
  });

  it('matches as many speakers as possible without a threshold', () => {
    expect(matchesOf(logOdds(1, 2, 0.1, 0.2), 2, 2, 0, true).sort()).toEqual([0, 1]);
    expect(matchesOf(logOdds(30, 20, 10), 3, 1, 0, true)).toEqual([0, undefined, undefined]);
    expect(matchesOf(Float64Array.of(-12), 1, 1, 0, true)).toEqual([0]);
  });

  it('matches at the threshold, and not below it', () => {
    expect(matchesOf(logOdds(49.4, 10), 1, 2, 50, true)).toEqual([undefined]);
    expect(matchesOf(logOdds(49.6, 10), 1, 2, 50, true)).toEqual([0]);
    expect(matchesOf(logOdds(99.4, 10), 1, 2, 100, false)).toEqual([undefined]);
    expect(matchesOf(logOdds(99.9, 10), 1, 2, 100, false)).toEqual([0]);
  });

  it('keeps a good match instead of a pair below the threshold', () => {
    expect(matchesOf(logOdds(95, 40, 60, 30), 2, 2, 50, true)).toEqual([0, undefined]);
  });

  it('matches two speakers above the threshold rather than one with higher confidence', () => {
    const values = Float64Array.of(5, 1, 4.5, -3);
    expect(matchesOf(values, 2, 2, 50, true)).toEqual([1, 0]);
  });

  it('keeps a certain match, however dissimilar the other pairs are', () => {
    // The sum of raw log-odds is larger for −40 and −1 than for 9 and −60.
    expect(matchesOf(Float64Array.of(9, -40, -1, -60), 2, 2, 0, true)).toEqual([0, 1]);
  });

  it('chooses the most similar of pairs that are all very dissimilar or all certain', () => {
    expect(matchesOf(Float64Array.of(-30, -15, -20), 1, 3, 0, true)).toEqual([1]);
    expect(matchesOf(Float64Array.of(-30, -15, -20), 3, 1, 0, true)).toEqual([undefined, 0, undefined]);
    expect(matchesOf(Float64Array.of(14, 20, -20), 3, 1, 50, true)).toEqual([undefined, 0, undefined]);
  });

  it('is the optimum of all assignments', () => {
    let seed = 7;
    const random = () => {
      seed = (seed * 16807) % 2147483647;
      return seed / 2147483647;
    };
    for (let round = 0; round < 200; round++) {
      const values = Float64Array.from({ length: 9 }, () => 12 * (random() - 0.5));
      const chosen = matchesOf(values, 3, 3, 0, true);
      const total = (columns: readonly (number | undefined)[]) =>
        columns.reduce<number>((sum, column, row) => sum + values[3 * row + column!], 0);
      const all = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]; // biome-ignore format: a table
      expect(total(chosen)).toBeCloseTo(Math.max(...all.map(total)), 6);
    }
  });
});

describe('the confidence of a turn', () => {
  const speakers = [{ match: 0, confidence: [90, 0] }, { match: undefined, confidence: [0, 50] }]; // biome-ignore format: a table

  it('is the confidence of the speaker who certainly talks', () => {
    expect(turnConfidence([100, 0], speakers)).toEqual([90, 0]);
  });
  it('combines all speakers who may talk', () => {
    expect(turnConfidence([80, 40], speakers)).toEqual([72, 20]);
    expect(turnConfidence([50, 50], [speakers[0], speakers[0]])).toEqual([70, 0]);
  });
});

/** A diarization of one speaker. @param turns number of turns of one second */
function diarizationOf(turns: number): Diarization {
  const none = new Uint8Array(0);
  return {
    durationSeconds: 2 * turns,
    speakers: 1,
    turns: Array.from({ length: turns }, (_, at) => ({
      speaker: 0,
      startSeconds: 2 * at,
      endSeconds: 2 * at + 1,
      confidence: [100],
    })),
    exclusiveTurns: [],
    tracks: { resolutionSeconds: 0.02, confidence: none, speech: none, crosstalk: none, speakers: [] },
  };
}

it('writeIdentification yields chunks below 128 KiB for 50 long labels', async () => {
  // Some of the 100 characters of a label take six in JSON.
  const labels = Array.from({ length: 50 }, (_, at) =>
    String(at).padEnd(100, at % 2 === 0 ? '\u0001' : '🎤'.repeat(2)),
  );
  const matches = [{ match: 1, confidence: labels.map((_, at) => at) }];
  const chunks = await collect(
    writeIdentification(diarizationOf(1500), matches, labels, { turnLevelConfidence: true }),
  );
  expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThan(128 * 1024);
  const document = JSON.parse(chunks.join(''));
  expect(document.identification).toHaveLength(1500);
  expect(document.identification[1499]).toMatchObject({ speaker: labels[1], start: 2998, match: labels[1] });
  expect(Object.keys(document.identification[700].confidence)).toHaveLength(50);
  expect(document.voiceprints[0].confidence[labels[49]]).toBe(49);
});
