import { describe, expect, it } from 'vitest';
import { testSignal } from '../../test/helpers/audio.ts';
import { StageClock } from './stage-clock.ts';

describe('samples that a shard reads to the end', () => {
  it('are all there, with a pause for four seconds of them and not for every block', async () => {
    const whole = testSignal(16_000, 1, 17.3);
    const sizes = [1, 576, 1152, 40_000, 0, 333];
    async function* blocks(): AsyncGenerator<Float32Array> {
      const reused = new Float32Array(40_000);
      for (let at = 0, turn = 0; at < whole.length; turn++) {
        const size = Math.min(sizes[turn % sizes.length], whole.length - at);
        reused.set(whole.subarray(at, at + size));
        yield reused.subarray(0, size);
        at += size;
      }
    }
    let pauses = 0;
    const clock = new StageClock(
      () => pauses,
      async () => {
        pauses++;
      },
    );
    const read: number[] = [];
    for await (const block of clock.samples(blocks())) {
      for (const sample of block) read.push(sample);
    }
    expect(Float32Array.from(read)).toEqual(whole);
    expect(pauses).toBeLessThanOrEqual(5);
    expect(clock.finish().decodeMs).toBe(pauses);
  });
});
