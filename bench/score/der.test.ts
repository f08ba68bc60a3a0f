import { describe, expect, it } from 'vitest';
import {
  diarizationError,
  type LabelledSegment,
  optimalMapping,
  parseRttm,
  parseSingleFileRttm,
  pool,
  rate,
  segmentsFromTurns,
} from './der.ts';
import reference from './der_cases.json' with { type: 'json' };

type Row = [string, number, number];
const segments = (rows: unknown): LabelledSegment[] =>
  segmentsFromTurns((rows as Row[]).map(([speaker, start, end]) => ({ speaker, start, end })));

describe('diarizationError', () => {
  it(`equals ${reference.madeBy} in every component on ${reference.cases.length} annotations`, () => {
    for (const expected of reference.cases) {
      const error = diarizationError(segments(expected.reference), segments(expected.hypothesis));
      expect(error.totalSeconds).toBeCloseTo(expected.total, 5);
      expect(error.missSeconds).toBeCloseTo(expected.miss, 5);
      expect(error.falseAlarmSeconds).toBeCloseTo(expected.falseAlarm, 5);
      expect(error.confusionSeconds).toBeCloseTo(expected.confusion, 5);
      expect(rate(error).der / 100).toBeCloseTo(expected.der, 7);
    }
  });

  it('pools like the reference: sums before the ratio', () => {
    const errors = reference.cases.map((one) => diarizationError(segments(one.reference), segments(one.hypothesis)));
    expect(rate(pool(errors)).der / 100).toBeCloseTo(reference.pooledDer, 7);
  });

  it('is 0 for the same turns with other speaker names', () => {
    const truth = segments([
      ['a', 0, 4.2],
      ['b', 3.9, 8],
      ['a', 9, 9.001],
    ]);
    const renamed = truth.map((one) => ({ ...one, speaker: one.speaker === 'a' ? 'x' : 'y' }));
    expect(diarizationError(truth, renamed)).toMatchObject({
      missSeconds: 0,
      falseAlarmSeconds: 0,
      confusionSeconds: 0,
      referenceSpeakers: 2,
    });
    expect(optimalMapping(truth, renamed)).toEqual(
      new Map([
        ['x', 'a'],
        ['y', 'b'],
      ]),
    );
  });

  it('counts overlapping segments of a speaker once', () => {
    const error = diarizationError(
      segments([
        ['a', 0, 5],
        ['a', 3, 8],
      ]),
      segments([['x', 0, 8]]),
    );
    expect(error).toMatchObject({ totalSeconds: 8, missSeconds: 0, falseAlarmSeconds: 0, confusionSeconds: 0 });
  });

  it('counts an error of one microsecond', () => {
    const error = diarizationError(segments([['a', 0, 1]]), segments([['x', 0, 1.000001]]));
    expect(error.falseAlarmSeconds).toBe(1e-6);
  });

  it('counts all speech as false alarm against an empty reference', () => {
    const error = diarizationError([], segments([['x', 0, 2]]));
    expect(error).toMatchObject({ totalSeconds: 0, falseAlarmSeconds: 2, referenceSpeakers: 0, hypothesisSpeakers: 1 });
    expect(rate(error).der).toBe(Number.POSITIVE_INFINITY);
    expect(rate(diarizationError([], [])).der).toBe(0);
  });
});

describe('parseRttm', () => {
  const text =
    ';; comment\nSPEAKER f1 1 0.5 1.25 <NA> <NA> alice <NA> <NA>\nSPKR-INFO f1 1 <NA> <NA> <NA> unknown alice <NA>\r\n' +
    'SPEAKER f2 1 0 0 <NA> <NA> bob <NA> <NA>\nSPEAKER f1 1 2 1 <NA> <NA> bob <NA> <NA>\n\n';

  it('groups SPEAKER lines by file and leaves out empty segments', () => {
    expect(parseRttm(text)).toEqual(
      new Map([
        [
          'f1',
          [
            { speaker: 'alice', startMicros: 500_000, endMicros: 1_750_000 },
            { speaker: 'bob', startMicros: 2_000_000, endMicros: 3_000_000 },
          ],
        ],
        ['f2', []],
      ]),
    );
  });

  it('names a malformed line, and refuses two files if one is expected', () => {
    expect(() => parseRttm('SPEAKER f1 1 zero 1 <NA> <NA> a')).toThrow('RTTM line 1');
    expect(() => parseRttm('\nSPEAKER f1 1 0')).toThrow('RTTM line 2');
    expect(() => parseSingleFileRttm(text)).toThrow('f1, f2');
  });
});
