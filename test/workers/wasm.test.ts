import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Miniflare } from '../../client/local/miniflare.ts';
import { createDecoders } from '../../src/platform/wasm/codecs.ts';
import { createDsp } from '../../src/platform/wasm/dsp.ts';
import { startTestWorker } from '../helpers/workerd.ts';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const CODECS = at('../../wasm/codecs/codecs.wasm');
const DSP = at('../../wasm/dsp/dsp.wasm');

let workerd: Miniflare;

beforeAll(async () => {
  const wasm = (path: string, file: string) =>
    ({ type: 'CompiledWasm', path, contents: new Uint8Array(readFileSync(file)) }) as const;
  workerd = await startTestWorker('wasm', {}, [wasm('codecs.wasm', CODECS), wasm('dsp.wasm', DSP)]);
});

afterAll(() => workerd?.dispose());

async function runInWorkerd(path: string, body: string | Uint8Array): Promise<Float32Array> {
  const response = await workerd.dispatchFetch(`http://workerd${path}`, { method: 'POST', body });
  expect(response.status).toBe(200);
  return new Float32Array(await response.arrayBuffer());
}

const dsp = createDsp(new WebAssembly.Module(readFileSync(DSP)));
const decoders = createDecoders(new WebAssembly.Module(readFileSync(CODECS)));
const raw = (samples: Float32Array) => new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
const wave = Float32Array.from({ length: 48000 }, (_, i) => Math.sin(i * i * 1e-4) * 0.5);

interface Case {
  readonly file: string;
  readonly codec: 'mp3' | 'flac';
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly packets: readonly (readonly [offset: number, size: number])[];
  readonly extraDataHex?: string;
}
const fixtures = at('../fixtures/audio/');
const cases: Case[] = JSON.parse(readFileSync(`${fixtures}codec_cases.json`, 'utf8'));

it.each(cases)('decodes $file in workerd bit for bit as in Node', async ({ file, packets, extraDataHex, ...spec }) => {
  const bytes = readFileSync(fixtures + file);
  const cut = packets.map(([offset, size]) => bytes.subarray(offset, offset + size));
  const extraData = Buffer.from(extraDataHex ?? '', 'hex');
  const decoder = decoders.open({ ...spec, extraData: extraData.length > 0 ? extraData : undefined });
  const expected = cut.flatMap((packet) => Array.from(decoder.decode(packet)));
  decoder.close();
  const body = {
    spec,
    extraData: extraData.toString('base64'),
    packets: cut.map((packet) => packet.toString('base64')),
  };
  const out = await runInWorkerd('/decode', JSON.stringify(body));
  expect(out.length).toBeGreaterThan(4000);
  expect(out).toEqual(Float32Array.from(expected));
});

it('resamples in workerd bit for bit as in Node', async () => {
  for (const rateHz of [44100, 12345, 44101]) {
    const resampler = dsp.resampler.open(rateHz, 0, 0);
    const expected = [...resampler.push(wave), ...resampler.flush()];
    resampler.close();
    expect(await runInWorkerd(`/resample?from=${rateHz}`, raw(wave))).toEqual(Float32Array.from(expected));
  }
});

it('computes the filterbank and pooling in workerd bit for bit as in Node', async () => {
  expect(await runInWorkerd('/filterbank', raw(wave))).toEqual(dsp.filterbank.compute(wave));
  const frameCount = 48000 / 80;
  const trunk = { frames: wave, frameCount, channels: 80 };
  const mask = new Uint8Array(frameCount).fill(1);
  expect(await runInWorkerd('/pool?channels=80', raw(wave))).toEqual(dsp.pooling.pool([{ trunk, mask }]));
});
