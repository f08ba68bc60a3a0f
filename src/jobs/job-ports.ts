import type { ByteSource, Result } from '../audio/audio-ports.ts';
import type { AudioPorts } from '../audio/recording.ts';
import type { TranscriptionModel } from '../contract/languages.ts';
import type { Plda } from '../diarization/clustering/plda.ts';
import type {
  EmbeddingPort,
  FilterbankPort,
  MelPowerPort,
  PoolingPort,
  SegmentationPort,
} from '../diarization/model-ports.ts';
import type { SettingName } from '../diarization/parameters.ts';
import type { EngineAnswer } from '../transcription/spans.ts';
import type { IdentificationParameters } from '../voiceprint/identification.ts';
import type { Message, RetryReason } from './job-messages.ts';
import type { JobStore } from './job-store.ts';
import type { SourceError } from './source-error.ts';

export interface QueuePort {
  send(message: Message, delaySeconds: number): Promise<void>;
  /** At most a hundred of them. Where it fails, some may have been sent. */
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
   * Writes an object in the place of the one that was read.
   *
   * @param etag of that one; undefined where there was none
   * @returns the tag of the new one; undefined, and nothing is written, when it is another one by now
   */
  replace(key: string, bytes: Uint8Array, etag: string | undefined): Promise<string | undefined>;
  /** Writes chunks of unknown total length, in bounded memory. */
  putStream(key: string, chunks: ObjectChunks): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  /** With its tag, for `replace`. */
  getTagged(key: string): Promise<{ readonly bytes: Uint8Array; readonly etag: string } | undefined>;
  getRange(key: string, offset: number, length: number): Promise<Uint8Array>;
  openStream(key: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** A stretch of an object; undefined when it is gone. */
  openRange(key: string, offset: number, length: number): Promise<ReadableStream<Uint8Array> | undefined>;
  exists(key: string): Promise<boolean>;
  /** Undefined when there is no such object. */
  sizeBytes(key: string): Promise<number | undefined>;
  /** When the object was written, in milliseconds since the Unix epoch. */
  uploadedAt(key: string): Promise<number | undefined>;
  deleteMany(keys: readonly string[]): Promise<void>;
  /**
   * Drops the parts of objects that are not whole yet and are written in vain, as is said of their key and when they
   * were begun. @returns how many objects
   */
  abortUploads(isInVain: (key: string, begunAt: number) => Promise<boolean>): Promise<number>;
  /** Keys below the prefix, at most `limit`. */
  list(prefix: string, limit: number): Promise<string[]>;
  /** Names of the folders directly below the prefix, in their order, at most `limit` of those after `after`. */
  folders(prefix: string, limit: number, after?: string): Promise<string[]>;
}

/** A recording for one forward pass. */
export interface OpenSource {
  readonly source: ByteSource;
  /** Two sources of one job with the same identity have the same bytes. */
  readonly identity: string;
  /** Drops what was opened and not read. */
  close?(): void;
}

/** An object that holds a recording. */
export interface StoredRecording {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag?: string;
  /** Of the file that it is a copy of (`OpenSource`). */
  readonly identity?: string;
}

export interface SourcesPort {
  /**
   * The recording at an address, http, https or `data:`; 'copy' where nothing pins it, so that only a copy can be read.
   */
  open(url: string, maxBytes: number): Promise<Result<OpenSource | 'copy', SourceError>>;
  openObject(object: StoredRecording): OpenSource;
  /** The copy under that key, if there is one; a copy is whole or not there. */
  findCopy(key: string): Promise<StoredRecording | undefined>;
}

/** Copies recordings that cannot be read where they are. Takes as long as the server does, and blocks no other job. */
export interface CopiesPort {
  /**
   * Begins a copy under `copyKey`; the job's `ingest` message is sent when it is there, or the job fails. Harmless
   * while one is made.
   */
  request(jobId: string, url: string, maxBytes: number): Promise<void>;
}

/** Models and signal processing of this isolate, loaded once. */
export interface Engine {
  readonly segmentation: SegmentationPort;
  readonly embedding: EmbeddingPort;
  readonly filterbank: FilterbankPort;
  readonly melPower: MelPowerPort;
  readonly pooling: PoolingPort;
  /** WebAssembly memory now, in bytes. */
  memoryBytes(): number;
}

/** What the job's object says of a shard that is about to be analysed. */
export type ShardStart =
  /** @param starts how often it was begun without an end that is known, this time included */
  | { readonly kind: 'run'; readonly starts: number }
  /** Its part is there, or another copy of the message is in work. */
  | { readonly kind: 'skip' }
  /** The object hands out shards of another file or version, or not this one. */
  | { readonly kind: 'unknown' };

/**
 * Hands out the shards of a job, a few at a time, holds their leases, counts their parts and starts the assembly once.
 */
export interface ProgressPort {
  /** Parts of that tag count from now on, and no others. */
  begin(jobId: string, tag: string): Promise<void>;
  /** Share of the recording that was read, 0…1. */
  reportIngest(jobId: string, share: number): Promise<void>;
  /** The first `shards` shards can be analysed; the recording is still being read. */
  ready(jobId: string, tag: string, shards: number): Promise<void>;
  /** Sets the number of shards. Another call sends lost shards again. */
  expect(jobId: string, tag: string, shardCount: number): Promise<void>;
  startShard(jobId: string, shard: number, tag: string): Promise<ShardStart>;
  /** Prolongs the lease of a shard in work. @returns whether its part is still wanted */
  report(jobId: string, shard: number, tag: string, fraction: number): Promise<boolean>;
  /** The shard is to be begun again. @param isForgiven whether this start does not count */
  putBack(jobId: string, shard: number, tag: string, dueAt: number, isForgiven: boolean): Promise<void>;
  /** @returns whether parts of that tag count */
  partDone(jobId: string, shard: number, tag: string): Promise<boolean>;
  /** Parts are gone: no part of that tag counts any more. */
  restart(jobId: string, tag: string): Promise<void>;
  /** Whatever was handed out counts as lost, and is sent again. */
  resend(jobId: string): Promise<void>;
  /** The job has ended. */
  end(jobId: string): Promise<void>;
  /** 0…1 */
  fraction(jobId: string): Promise<number>;
}

export interface WebhookPort {
  /** One POST; follows at most two redirects, waits at most ten seconds. */
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
   */
  transcribe(
    samples: Uint8Array,
    options: { readonly language?: string; readonly signal?: AbortSignal },
  ): Promise<Result<EngineAnswer, EngineFault>>;
}

export type Log = (level: 'info' | 'warn' | 'error', event: string, fields?: Record<string, unknown>) => void;

/** All that the steps of a job call. */
export interface JobPorts {
  readonly store: JobStore;
  readonly queue: QueuePort;
  readonly objects: ObjectStore;
  readonly sources: SourcesPort;
  readonly copies: CopiesPort;
  readonly media: {
    /**
     * @param asOf the moment, in milliseconds since the Unix epoch, at which the recording must not have been past its
     * time
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
  /** The same of the signing key before; undefined where none is accepted. */
  readonly previousWebhookSecret?: (accountId: string, version: number) => Promise<string | undefined>;
  readonly codecs: () => AudioPorts;
  /** Models, with the segmentation of that setting. */
  readonly engine: (setting: SettingName) => Promise<Engine>;
  /** Of which version of the service and which models the work of a job is (`workOf`). */
  readonly work: string;
  /** The PLDA of an embedder; undefined where it has none. */
  readonly plda: (embeddingId: string) => Promise<Plda | undefined>;
  /** How scores of an embedder become probabilities. */
  readonly identification: (embeddingId: string) => IdentificationParameters;
  readonly log: Log;
  readonly now: () => number;
  /** Lets other requests of the isolate run; the platform's clock moves on only here. */
  readonly pause: () => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly outputTtlMs: number;
}

/** What one step calls: the named ports, and the part of the store that it uses. */
export type StepPorts<Name extends Exclude<keyof JobPorts, 'store'>, Store> = Pick<JobPorts, Name> & {
  readonly store: Store;
};
