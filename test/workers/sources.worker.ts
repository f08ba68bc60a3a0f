import { Recording } from '../../src/audio/recording.ts';
import type { OpenSource } from '../../src/jobs/job-ports.ts';
import { SourceReadError } from '../../src/jobs/source-error.ts';
import { pause } from '../../src/platform/event-loop.ts';
import { type CopyState, copyRecording } from '../../src/platform/sources/copy.ts';
import { createSources, httpClient } from '../../src/platform/sources/sources.ts';

interface Env {
  readonly BUCKET: R2Bucket;
}

interface Question {
  readonly url: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** How long one call of a copy may take. */
  readonly copyMs: number;
  /** Deletes the copy in R2 once its first samples were read. */
  readonly loseCopy: boolean;
  /** Ends reading after the first samples. */
  readonly stopsEarly: boolean;
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
const COPY = 'work/job/source';
const MAX_CALLS = 50;

/**
 * Opens the recording at an address in workerd, copies it where it must be copied, reads it forward and closes what it
 * opened, as jobs do. The answer is JSON.
 */
async function answer({ BUCKET: bucket }: Env, question: Question): Promise<unknown> {
  const { url, maxBytes, timeoutMs } = question;
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
  if (opened.value !== 'copy') return { how: 'in place', ...(await read(bucket, opened.value, question)) };
  let state: CopyState | undefined;
  for (let calls = 1; calls <= MAX_CALLS; calls++) {
    const target = {
      bucket,
      key: COPY,
      maxBytes,
      timeoutMs: question.copyMs,
      signal: new AbortController().signal,
      save: async (next: CopyState | undefined) => {
        state = next;
      },
    };
    const end = await copyRecording(client, url, target, state);
    if (end.kind === 'failed') return { how: 'copied', calls, error: end.error };
    if (end.kind === 'unfinished') continue;
    const copy = await sources.findCopy(COPY);
    if (!copy) throw new Error('there is no copy');
    return { how: 'copied', calls, ...(await read(bucket, sources.openObject(copy), question)) };
  }
  throw new Error('the copy does not end');
}

async function read(bucket: R2Bucket, { source, close }: OpenSource, { loseCopy, stopsEarly }: Question) {
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
    return Response.json(await answer(env, (await request.json()) as Question));
  },
};
