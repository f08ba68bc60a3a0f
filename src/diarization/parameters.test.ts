import { describe, expect, it } from 'vitest';
import { settingsOf, withTuning } from './parameters.ts';

describe('withTuning', () => {
  it('lays the values for all settings and then those for its own over the defaults', () => {
    const tuned = {
      all: { clustering: { linkageThreshold: 0.41, sameWindowDistance: 0.9 } },
      'community-1': { clustering: { linkageThreshold: 0.52 } },
    };
    const precise = withTuning(settingsOf('precision-2'), tuned).clustering;
    expect([precise.linkageThreshold, precise.sameWindowDistance]).toEqual([0.41, 0.9]);
    const fast = withTuning(settingsOf('community-1'), tuned).clustering;
    expect([fast.linkageThreshold, fast.sameWindowDistance]).toEqual([0.52, 0.9]);
    expect(fast.minCleanSeconds).toBe(settingsOf('community-1').clustering.minCleanSeconds);
  });

  it('refuses names and types that do not exist', () => {
    const settings = settingsOf('precision-2');
    expect(() => withTuning(settings, { all: { clustering: { treshold: 1 } } })).toThrow(
      'tuned.all.clustering.treshold',
    );
    expect(() => withTuning(settings, { all: { clustering: 1 } })).toThrow('tuned.all.clustering');
    expect(() => withTuning(settings, { all: { name: { x: 1 } } })).toThrow('tuned.all.name');
  });
});
