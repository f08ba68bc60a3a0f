import { describe, expect, it } from 'vitest';
import { settingsOf, withTuning } from './parameters.ts';

describe('withTuning', () => {
  it('overrides the defaults with the values for all settings, then with those for this one', () => {
    const tuned = {
      all: { clustering: { linkageThreshold: 0.41, meanShare: 0.9 } },
      'community-1': { clustering: { linkageThreshold: 0.52 } },
    };
    const precision2 = withTuning(settingsOf('precision-2'), tuned).clustering;
    expect([precision2.linkageThreshold, precision2.meanShare]).toEqual([0.41, 0.9]);
    const community1 = withTuning(settingsOf('community-1'), tuned).clustering;
    expect([community1.linkageThreshold, community1.meanShare]).toEqual([0.52, 0.9]);
    expect(community1.subsegmentShare).toBe(settingsOf('community-1').clustering.subsegmentShare);
  });

  it('rejects unknown names and other types', () => {
    const settings = settingsOf('precision-2');
    expect(() => withTuning(settings, { all: { clustering: { treshold: 1 } } })).toThrow(
      'tuned.all.clustering.treshold',
    );
    expect(() => withTuning(settings, { all: { clustering: 1 } })).toThrow('tuned.all.clustering');
    expect(() => withTuning(settings, { all: { name: { x: 1 } } })).toThrow('tuned.all.name');
  });
});
