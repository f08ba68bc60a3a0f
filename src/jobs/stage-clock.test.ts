import { describe, expect, it } from 'vitest';
import { audioPorts, memorySource, testSignal } from '../../test/helpers/audio.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import { outputSampleCount, probeAudio, readSamples } from '../audio/index.ts';
import type { ResamplerPort } from '../audio/types.ts';
import { StageClock } from './stage-clock.ts';

const ports = audioPorts();

/** Counts the resamplers that are open. */
function counted(port: ResamplerPort): { readonly port: ResamplerPort; open: number } {
  const count = {
    open: 0,
    port: {
      ...port,
      open: (...where: Parameters<ResamplerPort['open']>) => {
        const resampler = port.open(...where);
        count.open++;
        const close = resampler.close.bind(resampler);
        resampler.close = () => {
          count.open--;
          close();
        };
        return resampler;
      },
    },
  };
  return count;
}

describe('samples that a shard stops reading', () => {
  it('leaves no resampler open: a day in 288 shards ran out of WebAssembly memory after 125 of them', async () => {
    const file = wav16(testSignal(22_050, 1, 9), 22_050);
    const probed = await probeAudio(memorySource(file), ports.decoder);
    if (!probed.ok) throw new Error(probed.error.message);
    const resamplers = counted(ports.resampler);
    const range = { startSample: 0, endSample: outputSampleCount(probed.value) };
    const blocks = readSamples(
      memorySource(file),
      probed.value,
      { decoder: ports.decoder, resampler: resamplers.port },
      range,
    );
    const samples = new StageClock(
      () => 0,
      async () => undefined,
    ).samples(blocks);
    await samples.next();
    expect(resamplers.open).toBe(1);
    await samples.return(undefined);
    expect(resamplers.open).toBe(0);
  });
});

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
