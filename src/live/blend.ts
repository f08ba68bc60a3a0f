import { assignOptimally } from '../diarization/numerics.ts';
import { Look } from './look.ts';
import { LIVE } from './parameters.ts';

/**
 * A look together with the ones before it: what several of them saw is the weighted mean of what they say, as where windows overlap
 * offline. A look's last frames count little, because it has not heard what follows them. Local speakers of an earlier look are taken for
 * those of this one with whom they agree most.
 *
 * @param past the latest first; frames outside `now` are left out
 */
export function blend(now: Look, past: readonly Look[]): Look {
  if (past.length === 0) return now;
  const { frames, speakers, firstFrame } = now;
  const activations = new Float32Array(frames * speakers);
  const expected = new Float32Array(frames);
  const weights = new Float32Array(frames);
  for (const look of [now, ...past]) {
    const order = look === now ? identity(speakers) : bestOrder(now, look);
    const offset = look.firstFrame - firstFrame;
    for (let row = Math.max(0, -offset); row < look.frames && row + offset < frames; row++) {
      const weight = Math.min(1, (look.frames - row) / LIVE.fullWeightFrames);
      const to = row + offset;
      weights[to] += weight;
      expected[to] += weight * look.expected[row];
      for (let local = 0; local < speakers; local++) {
        activations[to * speakers + order[local]] += weight * look.activations[row * speakers + local];
      }
    }
  }
  for (let row = 0; row < frames; row++) {
    expected[row] /= weights[row];
    for (let local = 0; local < speakers; local++) activations[row * speakers + local] /= weights[row];
  }
  return new Look(firstFrame, frames, speakers, activations, expected, decide(activations, expected, speakers));
}

/** [frames, speakers] of 0 and 1: in each frame as many as are expected, the most active ones. */
function decide(activations: Float32Array, expected: Float32Array, speakers: number): Uint8Array {
  const active = new Uint8Array(activations.length);
  expected.forEach((value, row) => {
    const at = row * speakers;
    for (let count = Math.round(value); count > 0; count--) {
      let best = -1;
      for (let local = 0; local < speakers; local++) {
        if (active[at + local] === 1) continue;
        if (best < 0 || activations[at + local] > activations[at + best]) best = local;
      }
      active[at + best] = 1;
    }
  });
  return active;
}

function identity(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** For each local speaker of `look` the one of `now` it is taken for, so that they agree in the most frames. */
function bestOrder(now: Look, look: Look): ArrayLike<number> {
  const { speakers } = now;
  const shared = new Float64Array(speakers * speakers);
  for (let frame = Math.max(now.firstFrame, look.firstFrame); frame < Math.min(now.endFrame, look.endFrame); frame++) {
    for (let local = 0; local < speakers; local++) {
      const value = look.activation(local, frame);
      for (let other = 0; other < speakers; other++) {
        shared[local * speakers + other] += value * now.activation(other, frame);
      }
    }
  }
  return assignOptimally(shared, speakers, speakers);
}
