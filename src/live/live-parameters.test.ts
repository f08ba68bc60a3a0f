import { describe, expect, it } from 'vitest';
import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { LIVE, timingOf } from './live-parameters.ts';

const FRAME_SAMPLES = 1600;
const EVERY_LATENCY_MS = Array.from({ length: 471 }, (_, index) => 300 + 10 * index);

describe('timingOf', () => {
  it('keeps hop and look-ahead within the latency', () => {
    for (const latencyMs of EVERY_LATENCY_MS) {
      const { hopSamples, lookaheadSamples } = timingOf({ latencyMs });
      const longestMs = (1000 * (hopSamples + lookaheadSamples)) / SAMPLE_RATE_HZ;
      expect(longestMs).toBeLessThanOrEqual(latencyMs);
      expect(longestMs).toBeGreaterThan(latencyMs - 400);
    }
  });

  it('decides every moment within the latency, including the wait for a frame of 100 ms', () => {
    for (const latencyMs of EVERY_LATENCY_MS) {
      const { hopSamples, lookaheadSamples } = timingOf({ latencyMs });
      for (let window = 1; window <= 16; window++) {
        const windowEnd = Math.ceil((window * hopSamples) / FRAME_SAMPLES) * FRAME_SAMPLES;
        const decidedFrom = (window - 1) * hopSamples - lookaheadSamples;
        expect((windowEnd - decidedFrom) / 16).toBeLessThanOrEqual(latencyMs);
      }
    }
  });

  it('returns windows and memory long enough for the look-ahead', () => {
    for (const latencyMs of EVERY_LATENCY_MS) {
      const { windowSamples, lookaheadSamples, memorySamples } = timingOf({ latencyMs });
      expect(windowSamples - lookaheadSamples).toBeGreaterThanOrEqual(2.5 * SAMPLE_RATE_HZ);
      expect(memorySamples - lookaheadSamples).toBeGreaterThan(LIVE.sentSpanSeconds * SAMPLE_RATE_HZ);
      expect(windowSamples % FRAME_SAMPLES).toBe(0);
    }
  });

  it('holds no local speaker back at a latency of 500 ms', () => {
    expect(timingOf({ latencyMs: 500 }).maxPendingSamples).toBe(0);
    expect(timingOf({ latencyMs: 2000 }).maxPendingSamples).toBe(LIVE.maxPendingSeconds * SAMPLE_RATE_HZ);
  });
});
