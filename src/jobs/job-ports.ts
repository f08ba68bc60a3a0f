import type { ByteSource, Result } from '../audio/audio-ports.ts';
import type { AudioPorts } from '../audio/recording.ts';
import type { TranscriptionModel } from '../contract/languages.ts';
import type { Plda } from '../diarization/clustering/plda.ts';
import type { SettingName } from '../diarization/parameters.ts';
import type { AnalysisPorts } from '../diarization/shard.ts';
import type { EngineAnswer } from '../transcription/spans.ts';
import type { IdentificationParameters } from '../voiceprint/identification.ts';
import type { Message, RetryReason } from './job-messages.ts';
import type { JobStore } from './job-store.ts';
import type { SourceError } from './source-error.ts';

export interface QueuePort {
  send(message: Message, delaySeconds: number): Promise<void>;
  /** At most a hundred messages. If it throws, some may have been sent. */
  sendAll(messages: readonly Queued[]): Promise<void>;
}

export interface Queued {
  readonly message: Message;
  readonly delaySeconds: number;
}

/** Contents of an object in order; text is written as UTF-8. */
export type ObjectChunks = Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

/** Objects by key. */
export interface ObjectStore {
  put(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Replaces an object if it has not changed since it was read.
   *
   * @param etag tag of the object that was read; undefined if there was none
   * @returns the tag of the new object; undefined, and nothing is written, if the object has changed
   */
  replace(key: string, bytes: Uint8Array, etag: string | undefined): Promise<string | undefined>;
  /** Writes chunks of unknown total length, in bounded memory. */
  putStream(key: string, chunks: ObjectChunks): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  /** With its tag, for `replace`. */
  getTagged(key: string): Promise<{ readonly bytes: Uint8Array; readonly etag: string } | undefined>;
  getRange(key: string, offset: number, length: number): Promise<Uint8Array>;
  openStream(key: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** A byte range of an object; undefined if the object was deleted. */
  openRange(key: string, offset: number, length: number): Promise<ReadableStream<Uint8Array> | undefined>;
  exists(key: string): Promise<boolean>;
  /** Undefined when there is no such object. */
  sizeBytes(key: string): Promise<number | undefined>;
  /** When the object was written, in milliseconds since the Unix epoch. */
  uploadedAt(key: string): Promise<number | undefined>;
  deleteMany(keys: readonly string[]): Promise<void>;
  /**
   * Aborts unfinished uploads for which `isAbandoned` resolves to true.
   * @returns number of aborted uploads
   */
  abortUploads(isAbandoned: (key: string, begunAt: number) => Promise<boolean>): Promise<number>;
  /** At most `limit` keys with the prefix. */
  list(prefix: string, limit: number): Promise<string[]>;
  /** Sorted names of folders directly below the prefix, at most `limit` of those after `after`. */
  folders(prefix: string, limit: number, after?: string): Promise<string[]>;
}

/** A recording for one forward pass. */
export interface OpenSource {
  readonly source: ByteSource;
  /** Two sources of one job with the same identity have the same bytes. */
  readonly identity: string;
  /** Closes what was opened and not read. */
  close?(): void;
}

/** An object that holds a recording. */
export interface StoredRecording {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag?: string;
  /** Identity of the original of a copy (`OpenSource`). */
  readonly identity?: string;
}

export interface SourcesPort {
  /**
   * The recording at an http, https or `data:` address; 'copy' if the server sends nothing that identifies its version,
   * so that only a copy can be read.
   */
  open(url: string, maxBytes: number): Promise<Result<OpenSource | 'copy', SourceError>>;
  openObject(object: StoredRecording): OpenSource;
  /** The copy under that key, if there is one. Copies are stored only when complete. */
  findCopy(key: string): Promise<StoredRecording | undefined>;
}

/** Copies recordings that cannot be read at their source. A slow server blocks no other job. */
export interface CopiesPort {
  /**
   * Begins a copy under `copyKey`. When it is complete, the job's `ingest` message is sent; if it fails, the job fails.
   * Harmless while a copy is being made.
   */
  request(jobId: string, url: string, maxBytes: number): Promise<void>;
}

/** Models and signal processing of this isolate, loaded once. */
export interface Engine extends AnalysisPorts {
  /** WebAssembly memory now, in bytes. */
  memoryBytes(): number;
}

/** Answer of the job's object to the start of a shard. */
export type ShardStart =
  /** @param starts number of starts without a known end, this one included */
  | { readonly kind: 'run'; readonly starts: number }
  /** The part is stored, or another copy of the message is in work. */
  | { readonly kind: 'skip' }
  /** The object hands out shards of another file or version, or has not handed out this shard. */
  | { readonly kind: 'unknown' };

/**
 * Hands out the shards of a job, a few at a time, holds their leases, counts their parts and starts the assembly once.
 */
export interface ProgressPort {
  /** From now on only parts of that tag count. */
  begin(jobId: string, tag: string): Promise<void>;
  /** Share of the recording that was read, 0…1. */
  reportIngest(jobId: string, share: number): Promise<void>;
  /** The first `shards` shards can be analysed; the recording is still being read. */
  ready(jobId: string, tag: string, shards: number): Promise<void>;
  /** Sets the number of shards. Another call sends lost shards again. */
  expect(jobId: string, tag: string, shardCount: number): Promise<void>;
  startShard(jobId: string, shard: number, tag: string): Promise<ShardStart>;
  /** Extends the lease of a shard in work. @returns whether its part is still needed */
  report(jobId: string, shard: number, tag: string, fraction: number): Promise<boolean>;
  /** Schedules another start of the shard. @param isForgiven whether this start does not count */
  putBack(jobId: string, shard: number, tag: string, dueAt: number, isForgiven: boolean): Promise<void>;
  /** @returns whether parts of that tag count */
  partDone(jobId: string, shard: number, tag: string): Promise<boolean>;
  /** Stored parts are missing: all shards of that tag are handed out again. */
  restart(jobId: string, tag: string): Promise<void>;
  /** Sends all shards in work again: their messages are lost. */
  resend(jobId: string): Promise<void>;
  /** The job has ended. */
  end(jobId: string): Promise<void>;
  /** 0…1 */
  fraction(jobId: string): Promise<number>;
}

export interface WebhookPort {
  /** Sends one POST; follows at most two redirects and waits at most ten seconds. */
  post(
    url: string,
    body: Uint8Array<ArrayBuffer>,
    headers: Record<string, string>,
  ): Promise<Result<{ status: number }, { reason: RetryReason; detail: string }>>;
}

/** Why an engine did not transcribe a piece. */
export type EngineFault =
  /** The engine is overloaded or rate limited. */
  | { readonly kind: 'busy'; readonly message: string; readonly retryAfterSeconds?: number }
  /** The engine cannot be reached, timed out or failed. */
  | { readonly kind: 'unavailable'; readonly message: string }
  /** The engine rejected the request; a retry is unlikely to help. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The answer cannot be parsed. */
  | { readonly kind: 'nonsense'; readonly message: string };

/** A speech recogniser. */
export interface TranscriptionEngine {
  /** Maximum length of a piece of audio. */
  readonly maxPieceSeconds: number;
  /** Number of pieces that are sent in parallel. */
  readonly concurrency: number;
  /**
   * @param samples 16-bit, little-endian, mono, 16 kHz
   * @param language ISO 639 code; detected from the audio if not given
   * @param timeoutMs time for the answer, if less than the engine's own limit
   */
  transcribe(
    samples: Uint8Array,
    options: { readonly language?: string; readonly signal?: AbortSignal; readonly timeoutMs?: number },
  ): Promise<Result<EngineAnswer, EngineFault>>;
}

export type Log = (level: 'info' | 'warn' | 'error', event: string, fields?: Record<string, unknown>) => void;

/** Everything that the steps of a job call. */
export interface JobPorts {
  readonly store: JobStore;
  readonly queue: QueuePort;
  readonly objects: ObjectStore;
  readonly sources: SourcesPort;
  readonly copies: CopiesPort;
  readonly media: {
    /**
     * @param asOf moment at which the recording must not have expired, milliseconds since the Unix epoch
     */
    resolve(
      accountId: string,
      name: string,
      asOf: number,
    ): Promise<{ key: string; sizeBytes: number; etag?: string } | undefined>;
  };
  readonly progress: ProgressPort;
  readonly webhook: WebhookPort;
  /** Undefined if no engine is configured for the model. */
  readonly transcription: (model: TranscriptionModel) => TranscriptionEngine | undefined;
  readonly webhookSecret: (accountId: string, version: number) => Promise<string>;
  /** The secret derived from the previous signing key; undefined if there is none. */
  readonly previousWebhookSecret?: (accountId: string, version: number) => Promise<string | undefined>;
  readonly codecs: () => AudioPorts;
  /** Models and signal processing, with the segmentation model of that setting. */
  readonly engine: (setting: SettingName) => Promise<Engine>;
  /** Version and models that the stored work of a job belongs to (`workOf`). */
  readonly work: string;
  /** The PLDA of an embedding model; undefined if it has none. */
  readonly plda: (embeddingId: string) => Promise<Plda | undefined>;
  /** Calibration of an embedding model's scores to probabilities. */
  readonly identification: (embeddingId: string) => IdentificationParameters;
  readonly log: Log;
  readonly now: () => number;
  /** Lets other requests of the isolate run. The platform's clock advances only on I/O, as here. */
  readonly pause: () => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly outputTtlMs: number;
}

/** Ports of one step: the named ones, and the methods of the store that it uses. */
export type StepPorts<Name extends Exclude<keyof JobPorts, 'store'>, Store> = Pick<JobPorts, Name> & {
  readonly store: Store;
};
