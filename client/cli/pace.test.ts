import { describe, expect, it } from 'vitest';
import { Pacer } from './pace.ts';

describe('Pacer', () => {
  it('sends at the speed that was asked for, also after a delay', () => {
    let now = 1000;
    const pacer = new Pacer(1, () => now);
    expect(pacer.waitMs(0)).toBe(0);
    expect(pacer.waitMs(0.1)).toBeCloseTo(100);
    now = 3000;
    expect(pacer.waitMs(1.9)).toBe(0);
    expect(pacer.waitMs(2.5)).toBeCloseTo(500);
  });

  it('does not send all at once what a standstill of 8 s made late, which would end the stream', () => {
    for (const speed of [1, 4, Number.POSITIVE_INFINITY]) {
      let now = 0;
      const pacer = new Pacer(speed, () => now);
      let sentSeconds = 0;
      const send = () => {
        now += pacer.waitMs(sentSeconds);
        sentSeconds += 0.1;
      };
      for (let i = 0; i < 50; i++) send();
      const before = sentSeconds;
      now += 8000;
      const resumedMs = now;
      while (now === resumedMs) send();
      expect(sentSeconds - before).toBeLessThan(3.5);
      for (let i = 0; i < 20; i++) send();
      expect(now - resumedMs).toBeLessThanOrEqual(2100);
    }
  });

  it('runs ahead of the signs of the service by a lead, then at a moderate speed', () => {
    let now = 0;
    const pacer = new Pacer(Number.POSITIVE_INFINITY, () => now);
    expect(pacer.waitMs(3)).toBe(0);
    expect(pacer.waitMs(4)).toBeCloseTo(500);
    now = 500;
    expect(pacer.waitMs(4)).toBe(0);
    pacer.heard(10);
    expect(pacer.waitMs(13)).toBe(0);
    expect(pacer.waitMs(14)).toBeCloseTo(500);
    pacer.heard(9); // of another speaker, told later
    expect(pacer.waitMs(13)).toBe(0);
  });

  it('never exceeds the speed that was asked for, however fast the service is', () => {
    const pacer = new Pacer(10, () => 0);
    pacer.heard(100);
    expect(pacer.waitMs(50)).toBeCloseTo(5000);
  });
});
