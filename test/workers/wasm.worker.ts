/**
 * A Worker that runs the wasm adapters inside workerd; `wasm.test.ts` compares its answers with Node's, bit for bit.
 * POST /decode (JSON: spec, packets in base64) → samples; POST /resample?from=HZ, /filterbank, /pool (raw float32) →
 * float32.
 */

import type { CodecSpec } from '../../src/audio/audio-ports.ts';
import { createDecoders } from '../../src/platform/wasm/codecs.ts';
import { createDsp } from '../../src/platform/wasm/dsp.ts';
import codecsModule from '../../wasm/codecs/codecs.wasm';
import dspModule from '../../wasm/dsp/dsp.wasm';

// At module level, because statically imported modules must also instantiate during start-up.
const decoders = createDecoders(codecsModule);
const dsp = createDsp(dspModule);

export interface DecodeRequest {
  readonly spec: Omit<CodecSpec, 'extraData'>;
  readonly extraData: string;
  readonly packets: readonly string[];
}

const bytesOf = (base64: string) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

function concatenate(parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((total, { length }) => total + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

async function answer(request: Request): Promise<Float32Array> {
  const url = new URL(request.url);
  if (url.pathname === '/decode') {
    const { spec, extraData, packets } = await request.json<DecodeRequest>();
    const decoder = decoders.open({ ...spec, extraData: extraData ? bytesOf(extraData) : undefined });
    const out = concatenate(packets.map((packet) => decoder.decode(bytesOf(packet)).slice()));
    decoder.close();
    return out;
  }
  const samples = new Float32Array(await request.arrayBuffer());
  if (url.pathname === '/resample') {
    const resampler = dsp.resampler.open(Number(url.searchParams.get('from')), 0, 0);
    const out = concatenate([resampler.push(samples).slice(), resampler.flush().slice()]);
    resampler.close();
    return out;
  }
  if (url.pathname === '/filterbank') return dsp.filterbank.compute(samples);
  const channels = Number(url.searchParams.get('channels'));
  const frameCount = samples.length / channels;
  const trunk = { frames: samples, frameCount, channels };
  return dsp.pooling.pool([{ trunk, mask: new Uint8Array(frameCount).fill(1) }]) ?? new Float32Array(0);
}

export default {
  async fetch(request: Request): Promise<Response> {
    return new Response(await answer(request));
  },
};
