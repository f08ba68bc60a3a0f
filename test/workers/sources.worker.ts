import { outputSampleCount, probeAudio, readSamples } from '../../src/audio/index.ts';
import type { SourceRef } from '../../src/jobs/ports.ts';
import { createSources, SourceReadError } from '../../src/platform/sources/index.ts';

interface Env {
  readonly BUCKET: R2Bucket;
}

interface Question {
  readonly url: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

const noCodecs = {
  decoder: {
    open: () => {
      throw new Error('no decoder here');
    },
  },
  resampler: {
    open: () => {
      throw new Error('no resampler here');
    },
    contextInputSamples: () => 0,
  },
};

/** Resolves an address, and reads the recording behind it, in workerd. The answer is JSON. */
async function answer(env: Env, { url, maxBytes, timeoutMs }: Question): Promise<unknown> {
  const sources = createSources({
    bucket: env.BUCKET,
    allowLoopback: true,
    headersTimeoutMs: timeoutMs,
    stallTimeoutMs: timeoutMs,
    backoffMs: [10, 20, 40],
  });
  const resolved = await sources.resolve(url, 'spool/job', { maxBytes });
  if (!resolved.ok) return { error: resolved.error };
  const ref: SourceRef = resolved.value;
  try {
    const probed = await probeAudio(sources.open(ref), noCodecs.decoder);
    if (!probed.ok) return { ref, error: probed.error };
    const range = { startSample: 0, endSample: outputSampleCount(probed.value) };
    let [count, sum] = [0, 0];
    for await (const block of readSamples(sources.open(ref), probed.value, noCodecs, range)) {
      count += block.length;
      for (const sample of block) sum += Math.abs(sample);
    }
    return { ref, count, sum };
  } catch (error) {
    if (error instanceof SourceReadError) return { ref, error: error.error };
    throw error;
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    return Response.json(await answer(env, (await request.json()) as Question));
  },
};
