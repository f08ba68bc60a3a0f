import { describe, expect, it } from 'vitest';
import { StretchDecoder, stretchPlan } from './stretches.ts';

/** A decoder that never forgets where it began: it answers with the first frame it was given, and the present one. */
function opener() {
  const state = { open: 0, most: 0 };
  const open = () => {
    state.open++;
    state.most = Math.max(state.most, state.open);
    let first: number | undefined;
    return {
      sampleRateHz: 8000,
      decode(packet: Uint8Array) {
        first ??= packet[0];
        return Float32Array.of(first, packet[0]);
      },
      close() {
        state.open--;
      },
    };
  };
  return { open, state };
}

describe('StretchDecoder', () => {
  const plan = { stretchFrames: 10, warmUpFrames: 3 };

  it('gives a frame the same samples from wherever it is read', () => {
    const whole: string[] = [];
    const { open, state } = opener();
    const decoder = new StretchDecoder(open, plan, 0);
    expect(decoder.firstFrame).toBe(0);
    for (let frame = 0; frame < 45; frame++) whole.push(String([...decoder.decode(frame, Uint8Array.of(frame))]));
    decoder.close();
    expect(whole[9]).toBe('0,9');
    expect(whole[10]).toBe('7,10');
    expect(whole[44]).toBe('37,44');
    for (const wanted of [3, 9, 10, 16, 17, 20, 39]) {
      const part = new StretchDecoder(open, plan, wanted);
      for (let frame = part.firstFrame; frame < 45; frame++) {
        const samples = String([...part.decode(frame, Uint8Array.of(frame))]);
        if (frame >= wanted) expect(samples).toBe(whole[frame]);
      }
      part.close();
    }
    expect(state).toEqual({ open: 0, most: 2 });
  });

  it('needs no warm-up where frames stand alone', () => {
    const { open, state } = opener();
    const decoder = new StretchDecoder(open, { stretchFrames: 10, warmUpFrames: 0 }, 25);
    expect(decoder.firstFrame).toBe(20);
    expect([...decoder.decode(20, Uint8Array.of(20))]).toEqual([20, 20]);
    for (let frame = 21; frame <= 30; frame++) decoder.decode(frame, Uint8Array.of(frame));
    expect([...decoder.decode(31, Uint8Array.of(31))]).toEqual([30, 31]);
    decoder.close();
    expect(state.most).toBe(1);
  });
});

it('a stretch is never shorter than its warm-up', () => {
  expect(stretchPlan(8000, 576, 600)).toEqual({ warmUpFrames: 600, stretchFrames: 600 });
  expect(stretchPlan(48000, 1024, 24)).toEqual({ warmUpFrames: 24, stretchFrames: 938 });
});
