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
  /** Deletes the copy in R2 between probing and reading. */
  readonly loseCopy: boolean;
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

/** Resolves an address, and reads the recording behind it, in workerd, and closes what it opened, as jobs do. The answer is JSON. */
async function answer(env: Env, { url, maxBytes, timeoutMs, loseCopy }: Question): Promise<unknown> {
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
    const head = sources.open(ref);
    const probed = await probeAudio(head, noCodecs.decoder).finally(() => head.close?.());
    if (loseCopy && ref.kind === 'object') await env.BUCKET.delete(ref.key);
    if (!probed.ok) return { ref, error: probed.error };
    const range = { startSample: 0, endSample: outputSampleCount(probed.value) };
    const source = sources.open(ref);
    let [count, sum] = [0, 0];
    try {
      for await (const block of readSamples(source, probed.value, noCodecs, range)) {
        count += block.length;
        for (const sample of block) sum += Math.abs(sample);
      }
    } finally {
      source.close?.();
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
