import { describe, expect, it } from 'vitest';
import { settingsOf } from '../parameters.ts';
import { type ClusterTurn, joinFragments } from './fragments.ts';
import type { ClusterModel } from './strategy.ts';

const { fragments } = settingsOf('precision-2').clustering;
const ANYBODY = { min: 1, max: 100 };

/** A speaker who sounds like an angle of a circle, after so much speech, of which so much goes in one direction. */
type Voice = readonly [degrees: number, weight: number, coherence?: number];

function model(...voices: readonly Voice[]): ClusterModel {
  const sums = voices.map(([degrees, weight, coherence = 0.5]) => {
    const angle = (degrees * Math.PI) / 180;
    const length = coherence * weight;
    return { sum: Float64Array.of(length * Math.cos(angle), length * Math.sin(angle)), weight };
  });
  const centroids = Float32Array.from(
    voices.flatMap(([degrees]) => [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)]),
  );
  return { clusters: voices.length, dimension: 2, shift: new Float32Array(2), centroids, temperature: 0.1, sums };
}

/** Turns of three seconds, each beginning so long after the one before has ended. */
function turns(clusters: readonly number[], pauseSeconds: number): ClusterTurn[] {
  return clusters.map((cluster, index) => {
    const startSeconds = index * (3 + pauseSeconds);
    return { cluster, startSeconds, endSeconds: startSeconds + 3 };
  });
}

const IN_TURN = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3];
/** Two of four are alike by 0.23 (each of 0.5 in directions 22° apart); the others by less than nothing. */
const FOUR = model([0, 12], [22, 12], [130, 12], [230, 12]);

describe('joinFragments', () => {
  it('joins two who take over from each other in the middle of what is said', () => {
    const joined = joinFragments(FOUR, turns(IN_TURN, 0), fragments, ANYBODY);
    expect(joined.clusters).toBe(3);
    expect(joined.sums?.map(({ weight }) => weight)).toEqual([24, 12, 12]);
    const [x, y] = joined.centroids;
    expect((Math.atan2(y, x) * 180) / Math.PI).toBeCloseTo(11, 3);
  });

  it('leaves two apart, as alike as they are, who let each other finish', () => {
    expect(joinFragments(FOUR, turns(IN_TURN, 0.4), fragments, ANYBODY)).toBe(FOUR);
  });

  it('counts a change without a pause, give or take some frames, and none with a breath or a longer overlap', () => {
    for (const pause of [-0.05, 0.14])
      expect(joinFragments(FOUR, turns(IN_TURN, pause), fragments, ANYBODY).clusters).toBe(3);
    for (const pause of [-0.3, 0.2]) expect(joinFragments(FOUR, turns(IN_TURN, pause), fragments, ANYBODY)).toBe(FOUR);
  });

  it('counts changes by the speech of whoever says less, all of it where two were joined', () => {
    const long = [...[0, 1, 0, 2, 0, 1, 0, 2, 0, 1, 0, 2, 0, 1, 0], ...Array.from({ length: 12 }, () => [3, 0]).flat()];
    expect(joinFragments(FOUR, turns(long, 0), fragments, ANYBODY).clusters).toBe(3);
    const five = model([0, 12], [0, 12], [22, 12], [130, 12], [230, 12]);
    const order = [0, 1, 0, 1, 3, 2, 0, 2, 4, 2, 1, 2, 3, 0, 4, 1, 3, 2, 4, 2, 3, 2, 4, 2];
    expect(joinFragments(five, turns(order, 0), fragments, ANYBODY).sums?.map(({ weight }) => weight)).toEqual([
      24, 12, 12, 12,
    ]);
  });

  it('puts the centroid of those joined nearer to who said more', () => {
    const uneven = model([0, 36], [22, 12], [130, 12], [230, 12]);
    const [x, y] = joinFragments(uneven, turns(IN_TURN, 0), fragments, ANYBODY).centroids;
    expect((Math.atan2(y!, x!) * 180) / Math.PI).toBeCloseTo(5.45, 2);
  });

  it('leaves two apart who take over from each other, but sound otherwise', () => {
    const two = model([0, 12], [100, 12]);
    expect(joinFragments(two, turns([0, 1, 0, 1, 0, 1], 0), fragments, ANYBODY)).toBe(two);
  });

  it('leaves two apart who are a little alike, however quickly they answer: lively talk has no pauses', () => {
    const lively = model([0, 12], [40, 12], [130, 12], [230, 12]);
    const order = Array.from({ length: 8 }, () => IN_TURN).flat();
    const quick = { ...fragments, longSpeechGrowth: 0 };
    expect(joinFragments(lively, turns(order, 0), quick, ANYBODY)).toBe(lively);
    const anyLikeness = { ...quick, leastSimilarity: 0 };
    expect(joinFragments(lively, turns(order, 0), anyLikeness, ANYBODY).clusters).toBe(3);
  });

  it('leaves two apart who talk for minutes, alike and quick as they are: an hour of ten people lost one', () => {
    const minutes = turns(Array.from({ length: 20 }, () => IN_TURN).flat(), 0);
    expect(joinFragments(FOUR, minutes, fragments, ANYBODY)).toBe(FOUR);
    expect(joinFragments(FOUR, minutes, { ...fragments, longSpeechGrowth: 0 }, ANYBODY).clusters).toBe(3);
    // Where every second counts for little, the fragments of a person are as long: eight hours of ten people had eleven.
    expect(joinFragments(FOUR, minutes, { ...fragments, evidenceSeconds: 60 }, ANYBODY).clusters).toBe(3);
    // A monologue of minutes that was taken for two people is one still.
    const two = turns(Array.from({ length: 40 }, () => [0, 1]).flat(), 0);
    expect(joinFragments(model([0, 12], [22, 12]), two, fragments, ANYBODY).clusters).toBe(1);
  });

  it('takes the only two for one person at a likeness that would not do among many', () => {
    const alike: Voice[] = [
      [0, 30],
      [22, 30],
    ];
    const order = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1];
    expect(joinFragments(model(...alike), turns(order, 0.5), fragments, ANYBODY).clusters).toBe(1);
    const among = model(...alike, [130, 30], [230, 30]);
    expect(joinFragments(among, turns([...order, 2, 3], 0.5), fragments, ANYBODY)).toBe(among);
  });

  it('counts the changes of all who were joined: three fragments of a person are one', () => {
    const three = model([0, 12, 0.6], [25, 12, 0.6], [50, 12, 0.6], [180, 12], [240, 12]);
    const order = [0, 1, 3, 1, 2, 4, 0, 1, 3, 1, 2, 4, 2, 1, 0, 3];
    expect(joinFragments(three, turns(order, 0), fragments, ANYBODY).clusters).toBe(3);
  });

  it('leaves as many as are wanted', () => {
    expect(joinFragments(FOUR, turns(IN_TURN, 0), fragments, { min: 4, max: 4 })).toBe(FOUR);
  });

  it('joins those who cost the least until as many are left as may be: a short fragment before two who talk long', () => {
    const talkers = model([0, 100, 0.4], [40, 100, 0.4], [130, 1, 0.4]);
    const heard = turns([0, 1, 0, 1, 2], 0.5);
    const two = joinFragments(talkers, heard, fragments, { min: 2, max: 2 });
    expect(two.sums?.map(({ weight }) => weight)).toEqual([100, 101]);
    expect(joinFragments(talkers, heard, fragments, { min: 1, max: 1 }).clusters).toBe(1);
    expect(joinFragments(talkers, heard, fragments, { min: 0, max: 0 }).clusters).toBe(1);
  });

  it('joins nobody who has no turn of their own, unless there are more than may be', () => {
    const silent = model([0, 12], [0, 12], [130, 12]);
    expect(joinFragments(silent, turns([0, 2, 0, 2], 0), fragments, ANYBODY)).toBe(silent);
    expect(joinFragments(silent, turns([0, 2, 0, 2], 0), fragments, { min: 2, max: 2 }).clusters).toBe(2);
  });

  it('does not join two who are heard, where as many as are wanted are, in the place of somebody without a turn', () => {
    const silent = model([0, 12], [22, 12], [130, 12], [230, 2]);
    const inTurn = turns([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2], 0);
    const left = (bounds: { min: number; max: number }) =>
      joinFragments(silent, inTurn, fragments, bounds).sums?.map(({ weight }) => weight);
    expect(left({ min: 3, max: 3 })).toEqual([12, 12, 14]);
    expect(left({ min: 3, max: 100 })).toEqual([12, 12, 14]);
    expect(left(ANYBODY)).toEqual([24, 12, 2]);
  });

  it('changes nothing of clusters that VBx did not find', () => {
    const { sums, ...cut } = model([0, 1], [1, 1]);
    expect(sums).toHaveLength(2);
    expect(joinFragments(cut, turns([0, 1, 0, 1], 0), fragments, ANYBODY)).toBe(cut);
  });
});
