import type { ByteSource } from '../audio/audio-ports.ts';
import type { JobPorts, ObjectChunks, ObjectStore } from './job-ports.ts';
import { TurnLost } from './mutex.ts';
import { type SourceError, type SourceErrorKind, SourceReadError } from './source-error.ts';

/** A failure of D1, R2, a queue or a Durable Object. Never counted against a job. */
export class PlatformFault extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause), { cause });
    this.name = 'PlatformFault';
  }
}

/** The same ports, whose exceptions of the platform's services are PlatformFaults. */
export function markPlatformFaults(ports: JobPorts): JobPorts {
  return {
    ...ports,
    store: marked(ports.store),
    queue: marked(ports.queue),
    objects: objectsMarked(ports.objects),
    progress: marked(ports.progress),
    copies: marked(ports.copies),
    media: marked(ports.media),
    sources: {
      ...ports.sources,
      findCopy: marked({ find: ports.sources.findCopy }).find,
      openObject: (object) => {
        const opened = ports.sources.openObject(object);
        return { ...opened, source: sourceMarked(opened.source) };
      },
    },
    // These load models from R2.
    ...marked({ engine: ports.engine, plda: ports.plda }),
  };
}

function marked<T extends object>(port: T): T {
  return new Proxy(port, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        try {
          return await method.apply(target, args);
        } catch (error) {
          throw error instanceof SourceReadError ? error : new PlatformFault(error);
        }
      };
    },
  });
}

/** Marks the reads of a recording in the bucket. */
function sourceMarked(source: ByteSource): ByteSource {
  const { open, read } = marked({
    open: (offset: number) => source.open(offset),
    read: (offset: number, length: number) => source.read(offset, length),
  });
  return {
    sizeBytes: source.sizeBytes,
    canSeek: source.canSeek,
    read,
    async open(offset) {
      const stream = await open(offset);
      return { read: marked({ read: () => stream.read() }).read, close: () => stream.close() };
    },
  };
}

/** An exception thrown by the chunks is no fault of the bucket. */
function objectsMarked(objects: ObjectStore): ObjectStore {
  const store = marked(objects);
  return new Proxy(store, {
    get: (target, name) => (name === 'putStream' ? putStream : Reflect.get(target, name)),
  });

  async function putStream(key: string, chunks: ObjectChunks): Promise<void> {
    let chunkFault: { readonly error: unknown } | undefined;
    const observed = (async function* () {
      try {
        yield* chunks;
      } catch (error) {
        chunkFault = { error };
        throw error;
      }
    })();
    try {
      await objects.putStream(key, observed);
    } catch (error) {
      throw chunkFault ? chunkFault.error : new PlatformFault(error);
    }
  }
}

/** The job fails after this many exceptions of a step: the recording, or the code that works on it, is at fault. */
export const MAX_FAULTS = 5;
/**
 * The job fails after this many starts of a step without a known end: the step probably ends its isolate. The pauses
 * between starts grow, and ten starts take an hour, so that another job in the isolate or a deployment fails no job.
 */
export const MAX_STARTS = 10;
/** A job fails when it has run for longer. */
export const MAX_JOB_MS = 24 * 3600 * 1000;

/** Pause after a fault of the platform, doubled each time, up to a quarter of an hour. */
const FIRST_PLATFORM_PAUSE_SECONDS = 5;
const MAX_PAUSE_SECONDS = 900;
/** Pause after a failure of the source, doubled each time: four minutes in all. */
const SOURCE_PAUSE_SECONDS = 15;
/** Pause after an exception of the step, quadrupled each time. */
const OWN_PAUSE_SECONDS = 2;
/** Pause of a step that lost its turn in an isolate. */
const TURN_PAUSE_SECONDS = 30;

/** Thrown to start the step again after a pause. */
export class RetryStep extends Error {
  override readonly name = 'RetryStep';
  constructor(
    reason: string,
    readonly delaySeconds: number,
  ) {
    super(reason);
  }
}

/** What to do after a step failed. */
export type Judgement =
  | {
      readonly kind: 'again';
      readonly delaySeconds: number;
      /** The start does not count against the job. */
      readonly isForgiven: boolean;
      readonly event: 'platform_fault' | 'turn_lost' | 'source_failed' | 'step_failed' | 'step_retried';
    }
  | { readonly kind: 'source_failed'; readonly error: SourceError }
  | { readonly kind: 'given_up' };

/**
 * @param starts starts of the step so far without a known end
 * @param attempt 1 for the queue's first delivery
 */
export function judge(error: unknown, starts: number, attempt: number): Judgement {
  const again = (event: Extract<Judgement, { kind: 'again' }>['event'], delaySeconds: number, isForgiven = false) =>
    ({ kind: 'again', event, delaySeconds: Math.min(MAX_PAUSE_SECONDS, delaySeconds), isForgiven }) as const;
  if (error instanceof PlatformFault)
    return again('platform_fault', FIRST_PLATFORM_PAUSE_SECONDS * 2 ** (attempt - 1), true);
  if (error instanceof TurnLost) return again('turn_lost', TURN_PAUSE_SECONDS, true);
  if (error instanceof RetryStep) return again('step_retried', error.delaySeconds);
  if (error instanceof SourceReadError) {
    if (PERMANENT.has(error.error.kind) || starts >= MAX_FAULTS) return { kind: 'source_failed', error: error.error };
    return again('source_failed', SOURCE_PAUSE_SECONDS * 2 ** (starts - 1));
  }
  // The isolate's memory is shared: another job may be the reason.
  if (isOutOfMemory(error)) return again('step_failed', SOURCE_PAUSE_SECONDS * 2 ** (starts - 1));
  if (starts >= MAX_FAULTS) return { kind: 'given_up' };
  return again('step_failed', OWN_PAUSE_SECONDS * 4 ** (starts - 1));
}

const isOutOfMemory = (error: unknown): boolean =>
  error instanceof RangeError && /allocation failed|out of memory/i.test(error.message);

/**
 * Faults that a retry does not fix: for example, a changed source does not change back, and a refused URL stays
 * refused.
 */
const PERMANENT: ReadonlySet<SourceErrorKind> = new Set([
  'changed',
  'incomplete',
  'too_slow',
  'http_status',
  'empty',
  'private_address',
  'invalid_url',
  'too_many_redirects',
  'web_page',
]);
