import { Recording } from '../../src/audio/recording.ts';
import type { OpenSource } from '../../src/jobs/job-ports.ts';
import { SourceReadError } from '../../src/jobs/source-error.ts';
import { pause } from '../../src/platform/event-loop.ts';
import { type CopyState, copyRecording } from '../../src/platform/sources/copy.ts';
import { createSources, httpClient } from '../../src/platform/sources/sources.ts';

interface Env {
  readonly BUCKET: R2Bucket;
}

interface ReadRequest {
  readonly url: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Time limit of one call of a copy. */
  readonly copyMs: number;
  /** Deletes the copy in R2 once its first samples were read. */
  readonly loseCopy: boolean;
  /** Ends reading after the first samples. */
  readonly stopsEarly: boolean;
}

const noCodecs = {
  decoder: {
    open: () => {
      throw new Error('the test has no decoder');
    },
  },
  resampler: {
    open: () => {
      throw new Error('the test has no resampler');
    },
    contextInputSamples: () => 0,
  },
};
const COPY = 'work/job/source';
const MAX_CALLS = 50;

/**
 * Opens a recording in workerd, copies it if it must be copied, reads it forward and closes it, as jobs do. Answers
 * with JSON.
 */
async function answer({ BUCKET: bucket }: Env, options: ReadRequest): Promise<unknown> {
  const { url, maxBytes, timeoutMs } = options;
  const client = httpClient({
    allowLoopback: true,
    headersTimeoutMs: timeoutMs,
    stallTimeoutMs: timeoutMs,
    backoffMs: [10, 20, 40],
    pause,
  });
  const sources = createSources({ bucket, ...client });
  const opened = await sources.open(url, maxBytes);
  if (!opened.ok) return { error: opened.error };
  if (opened.value !== 'copy') return { mode: 'in place', ...(await read(bucket, opened.value, options)) };
  let state: CopyState | undefined;
  for (let calls = 1; calls <= MAX_CALLS; calls++) {
    const target = {
      bucket,
      key: COPY,
      maxBytes,
      timeoutMs: options.copyMs,
      signal: new AbortController().signal,
      save: async (next: CopyState | undefined) => {
        state = next;
      },
    };
    const end = await copyRecording(client, url, target, state);
    if (end.kind === 'failed') return { mode: 'copied', calls, error: end.error };
    if (end.kind === 'unfinished') continue;
    const copy = await sources.findCopy(COPY);
    if (!copy) throw new Error('there is no copy');
    return { mode: 'copied', calls, ...(await read(bucket, sources.openObject(copy), options)) };
  }
  throw new Error(`the copy did not end in ${MAX_CALLS} calls`);
}

async function read(bucket: R2Bucket, { source, close }: OpenSource, { loseCopy, stopsEarly }: ReadRequest) {
  const { sizeBytes } = source;
  try {
    const recording = await Recording.open(source, noCodecs);
    if (!recording.ok) return { sizeBytes, error: recording.error };
    let [count, sum] = [0, 0];
    try {
      for await (const block of recording.value.samples()) {
        if (count === 0 && loseCopy) await bucket.delete(COPY);
        count += block.length;
        for (const sample of block) sum += Math.abs(sample);
        if (stopsEarly) break;
      }
    } finally {
      recording.value.close();
    }
    return { sizeBytes, count, sum };
  } catch (error) {
    if (error instanceof SourceReadError) return { sizeBytes, error: error.error };
    throw error;
  } finally {
    close?.();
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    return Response.json(await answer(env, (await request.json()) as ReadRequest));
  },
};
