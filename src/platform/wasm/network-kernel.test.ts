import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { moduleAt } from '../../../client/audio/ports.ts';
import { createTrunkKernel } from './networks.ts';

const BANDS = 80;
const file = (path: string) => new URL(`../../../${path}`, import.meta.url).pathname;
const module = moduleAt(file('wasm/networks/campplus.wasm'));
const weights = readFileSync(file('models/embedder-v6-trunk.weights'));

const feats = (frames: number, value: number) =>
  new Float32Array(frames * BANDS).map((_, index) => value * Math.sin(index));
const noPause = async () => undefined;

interface Pause {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** A kernel whose pauses last until they are ended by hand. */
function pausingKernel() {
  const pauses: Pause[] = [];
  const pause = () => new Promise<void>((resolve, reject) => pauses.push({ resolve, reject }));
  return { kernel: createTrunkKernel(module, weights, pause), pauses };
}

/** Lets pending promises continue. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Ends pauses in turn until none is left, except those that `isDead` selects. */
async function endPauses(pauses: Pause[], isDead: (pause: Pause) => boolean) {
  for (;;) {
    const at = pauses.findIndex((pause) => !isDead(pause));
    if (at < 0) return;
    pauses.splice(at, 1)[0].resolve();
    await settle();
  }
}

describe('a network kernel', () => {
  it('gives callers that interleave what each gets alone', async () => {
    const alone = createTrunkKernel(module, weights, noPause);
    const inputs = [feats(50, 1), feats(31, 2), feats(80, 3)];
    const expected = [];
    for (const input of inputs) expected.push(await alone.trunk(input, input.length / BANDS));
    const { kernel, pauses } = pausingKernel();
    const runs = inputs.map((input) => {
      const reused = input.slice();
      const run = kernel.trunk(reused, reused.length / BANDS);
      reused.fill(7);
      return run;
    });
    await endPauses(pauses, () => false);
    expect(await Promise.all(runs)).toEqual(expected);
  });

  it('completes the run of a caller that never continues', async () => {
    const alone = createTrunkKernel(module, weights, noPause);
    const { kernel, pauses } = pausingKernel();
    void kernel.trunk(feats(40, 1), 40);
    const [dead] = pauses;
    const run = kernel.trunk(feats(60, 2), 60);
    await endPauses(pauses, (pause) => pause === dead);
    expect(await run).toEqual(await alone.trunk(feats(60, 2), 60));
    const next = kernel.trunk(feats(30, 3), 30);
    await endPauses(pauses, (pause) => pause === dead);
    expect(await next).toEqual(await alone.trunk(feats(30, 3), 30));
  });

  it('drops the run of a caller whose pause fails', async () => {
    const { kernel, pauses } = pausingKernel();
    const failing = kernel.trunk(feats(40, 1), 40);
    pauses.splice(0, 1)[0].reject(new Error('aborted'));
    await expect(failing).rejects.toThrow('aborted');
    const run = kernel.trunk(feats(60, 2), 60);
    await endPauses(pauses, () => false);
    expect(await run).toEqual(await createTrunkKernel(module, weights, noPause).trunk(feats(60, 2), 60));
  });

  it('fails only for the caller whose input is too long', async () => {
    const { kernel, pauses } = pausingKernel();
    const run = kernel.trunk(feats(60, 2), 60);
    const tooLong = kernel.trunk(new Float32Array(2000 * BANDS), 2000);
    const refused = expect(tooLong).rejects.toThrow(RangeError);
    await endPauses(pauses, () => false);
    await refused;
    expect((await run).frameCount).toBe(30);
  });

  it('refuses weights that are incomplete, of another version or of another network', () => {
    const create = (bytes: Uint8Array) => () => createTrunkKernel(module, bytes, noPause);
    const changed = (at: number) => {
      const bytes = new Uint8Array(weights);
      bytes[at]++;
      return bytes;
    };
    const message = /not the weights of CAM\+\+'s trunk/;
    for (const at of [0, 4, 8, 12]) expect(create(changed(at))).toThrow(message);
    expect(create(weights.subarray(0, weights.length - 16))).toThrow(message);
    expect(create(new Uint8Array(3))).toThrow(message);
  });
});
