import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  type Decoded,
  memorySource,
  probeAudio,
  readSourceRate,
  worstDifference,
} from '../../test/helpers/audio.ts';
import { type FormatReference, tenthsOf, windowOf } from '../../test/helpers/format-references.ts';

/** A recording of every format, decoded by the service's code and compared with the output of native ffmpeg. */
const folder = new URL('../../test/fixtures/formats/', import.meta.url);
const read = (name: string) => new Uint8Array(readFileSync(new URL(name, folder)));
const references: FormatReference[] = JSON.parse(new TextDecoder().decode(read('references.json')));
const ports = audioPorts();

async function indexOf(file: Uint8Array): Promise<Decoded> {
  const probed = await probeAudio(memorySource(file), ports.decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  return probed.value;
}

/** Files whose length differs in ffmpeg: it plays the padding of the last block, which an edit list cuts. */
const PADDED = /^mp4-.*(aac|mp3|opus)/;
describe('every format', () => {
  it.each(references)('$file decodes to the samples of native ffmpeg', async (reference) => {
    const file = read(reference.file);
    const index = await indexOf(file);
    expect(index.warning).toBeUndefined();
    expect(index.sampleRateHz).toBe(reference.rateHz);
    const samples = await readSourceRate(file, index, ports);
    expect(samples).toHaveLength(index.totalSamples);
    if (PADDED.test(reference.file)) expect(index.totalSamples).toBeLessThanOrEqual(reference.totalSamples);
    else expect(index.totalSamples).toBe(reference.totalSamples);
    // The same samples at the same times: a shift of one sample fails.
    const { windowStart } = reference;
    const window = windowOf(reference);
    expect(window.some((value) => Math.abs(value) > 0.01)).toBe(true);
    expect(worstDifference(samples.slice(windowStart, windowStart + window.length), window)).toBeLessThan(2e-5);
    if (!PADDED.test(reference.file)) {
      for (const [i, value] of tenthsOf(samples).entries()) expect(value).toBeCloseTo(reference.tenths[i], 4);
    }
  });

  it('is used up to the end if truncated, or rejected with a sentence', async () => {
    for (const { file: name } of references) {
      const file = read(name);
      const { totalSamples } = await indexOf(file);
      for (const share of [0.02, 0.3, 0.71, 0.97]) {
        const cut = file.slice(0, Math.floor(file.length * share));
        const probed = await probeAudio(memorySource(cut), ports.decoder);
        if (!probed.ok) {
          expect({ name, share, message: probed.error.message }).toMatchObject({
            message: expect.stringMatching(/^[A-Z].*\.$/),
          });
          continue;
        }
        expect(probed.value.totalSamples).toBeLessThanOrEqual(totalSamples);
        expect(await readSourceRate(cut, probed.value, ports)).toHaveLength(probed.value.totalSamples);
      }
    }
  });
});

it('has a reference for every file', () => {
  const listed = new Set(references.map(({ file }) => file));
  const missing = readdirSync(folder).filter((name) => !/\.(sh|py|ts|json)$/.test(name) && !listed.has(name));
  // Its comfort noise is silence here; ffmpeg drops it.
  expect(missing).toEqual(['amr-nb-dtx-8000-mono.amr']);
});
