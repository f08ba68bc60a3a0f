import { afterEach, expect, it, vi } from 'vitest';

afterEach(() => vi.unstubAllGlobals());

it('sends the first channel in frames of 100 ms without losing samples', async () => {
  const frames: Float32Array[] = [];
  let processor: { process(inputs: Float32Array[][]): boolean } | undefined;
  vi.stubGlobal(
    'AudioWorkletProcessor',
    class {
      readonly port = { postMessage: (frame: Float32Array) => void frames.push(frame) };
    },
  );
  vi.stubGlobal('sampleRate', 16_000);
  vi.stubGlobal('registerProcessor', (name: string, Processor: new () => NonNullable<typeof processor>) => {
    expect(name).toBe('microphone-frames');
    processor = new Processor();
  });
  await import('./microphone-frames.ts');
  for (let block = 0; block < 25; block++) {
    const samples = Float32Array.from({ length: 128 }, (_, i) => block * 128 + i);
    expect(processor!.process([[samples, new Float32Array(128).fill(-1)]])).toBe(true);
  }
  expect(processor!.process([[]])).toBe(true);
  expect(frames.map(({ length }) => length)).toEqual([1600, 1600]);
  expect([...frames[0], ...frames[1]]).toEqual(Array.from({ length: 3200 }, (_, i) => i));
});
