import { type OpenOptions, openLiveStream } from '../live/open.ts';
import type { LiveStream } from '../live/stream.ts';
import type { WebSocketConstructor } from '../live/types.ts';
import { type ClientOptions, type ListOptions, RollcallClient } from '../sdk/client.ts';
import { randomId } from '../sdk/id.ts';
import type {
  DiarizeOptions,
  DiarizeOutput,
  ErrorOutput,
  IdentifyOptions,
  IdentifyOutput,
  JobCreated,
  JobList,
  JobState,
  Outcome,
  Turn,
  Usage,
  VoiceprintOptions,
  VoiceprintOutput,
} from '../sdk/types.ts';
import { RollcallError } from './error.ts';
import { type PlacedRecording, placeOf, type Recording } from './recording.ts';
import { countedStream, putWithProgress } from './upload.ts';

export interface RollcallOptions extends ClientOptions {
  /** For `live` without a global WebSocket (Node 20); `rollcall-client/node` sets it. */
  readonly webSocket?: WebSocketConstructor;
}

/** Progress of the upload, then of the analysis. `fraction` is 0 to 1. */
export interface JobProgress {
  readonly stage: 'uploading' | 'running';
  readonly fraction: number;
}

/** Options of every call that runs a job. */
export interface JobOptions {
  readonly onProgress?: (progress: JobProgress) => void;
  /** Stops waiting and cancels the job. */
  readonly signal?: AbortSignal;
}

/** A known person: a voiceprint, or a recording of one person of at most 30 s. */
export interface KnownVoice {
  readonly label: string;
  readonly voiceprint?: string;
  readonly recording?: Recording;
}

export type DiarizeFileOptions = Omit<DiarizeOptions, 'url'> & JobOptions;
export type IdentifyFileOptions = Omit<IdentifyOptions, 'url' | 'voiceprints'> & JobOptions;
export type TranscribeFileOptions = Omit<DiarizeOptions, 'url' | 'transcription' | 'transcriptionConfig'> &
  JobOptions & {
    /** Name or ISO code; detected by default. */
    readonly language?: string;
    /** Transcription model. */
    readonly transcriptionModel?: string;
  };

export interface Diarization {
  readonly jobId: string;
  readonly turns: readonly Turn[];
  readonly output: DiarizeOutput;
}
export interface Identification {
  readonly jobId: string;
  /** `speaker` is the label of the matched voice, or else that of the diarization. */
  readonly turns: IdentifyOutput['identification'];
  readonly output: IdentifyOutput;
}
export interface Transcription {
  readonly jobId: string;
  /** Turns with their text. */
  readonly turns: NonNullable<DiarizeOutput['turnLevelTranscription']>;
  readonly words: NonNullable<DiarizeOutput['wordLevelTranscription']>;
  readonly output: DiarizeOutput;
}

type StartJob = (url: string) => Promise<Outcome<JobCreated>>;

/** Calls that run whole jobs. They throw `RollcallError`; the single requests of `api` return errors instead. */
export class Rollcall {
  readonly api: RollcallClient;
  private readonly webSocket: WebSocketConstructor | undefined;

  constructor({ webSocket, ...options }: RollcallOptions) {
    this.api = new RollcallClient(options);
    this.webSocket = webSocket;
  }

  /** Who spoke when. */
  async diarizeFile(recording: Recording, options: DiarizeFileOptions = {}): Promise<Diarization> {
    const { onProgress, signal, ...request } = options;
    const start: StartJob = (url) => this.api.diarize({ ...request, url }, undefined, signal);
    const { jobId, output } = await this.run<DiarizeOutput>(recording, start, { onProgress, signal });
    return { jobId, turns: output.diarization, output };
  }

  /** Which of the given voices spoke when. */
  async identify(
    recording: Recording,
    voices: readonly KnownVoice[],
    options: IdentifyFileOptions = {},
  ): Promise<Identification> {
    const { onProgress, signal, ...request } = options;
    const voiceprints: { label: string; voiceprint: string }[] = [];
    for (const { label, voiceprint, recording: sample } of voices) {
      if (voiceprint === undefined && sample === undefined) {
        throw new TypeError(`the voice ${label} needs a voiceprint or a recording`);
      }
      const print = voiceprint ?? (await this.voiceprint(sample as Recording, { signal }));
      voiceprints.push({ label, voiceprint: print });
    }
    const start: StartJob = (url) => this.api.identify({ ...request, url, voiceprints }, undefined, signal);
    const { jobId, output } = await this.run<IdentifyOutput>(recording, start, { onProgress, signal });
    return { jobId, turns: output.identification, output };
  }

  /** The voiceprint of one person's recording of at most 30 s. */
  async voiceprint(recording: Recording, options: Omit<VoiceprintOptions, 'url'> & JobOptions = {}): Promise<string> {
    const { onProgress, signal, ...request } = options;
    const start: StartJob = (url) => this.api.voiceprint({ ...request, url }, undefined, signal);
    return (await this.run<VoiceprintOutput>(recording, start, { onProgress, signal })).output.voiceprint;
  }

  /**
   * Who said what.
   *
   * @throws RollcallError if the service has no transcription engine, or the engine failed
   */
  async transcribe(recording: Recording, options: TranscribeFileOptions = {}): Promise<Transcription> {
    const { language, transcriptionModel, ...rest } = options;
    const transcriptionConfig = { language, model: transcriptionModel };
    const result = await this.diarizeFile(recording, { ...rest, transcription: true, transcriptionConfig });
    const { jobId, output } = result;
    const { turnLevelTranscription: turns, wordLevelTranscription: words } = output;
    if (!turns || !words) {
      throw new RollcallError('failed', output.warning ?? 'The job has no transcription.', { jobId });
    }
    return { jobId, turns, words, output };
  }

  /** Opens a live stream: write samples, read events. */
  async live(options: OpenOptions = {}): Promise<LiveStream> {
    return must(await openLiveStream(this.api, { webSocket: this.webSocket, ...options }));
  }

  /** All jobs of the account, the newest first; reads further pages on demand. */
  async *jobs(filter: Omit<ListOptions, 'cursor'> = {}): AsyncGenerator<JobList['items'][number], void> {
    for (let cursor: string | undefined; ; ) {
      const page = must(await this.api.list({ limit: 100, ...filter, cursor }));
      yield* page.items;
      if (page.nextCursor === null) return;
      cursor = page.nextCursor;
    }
  }

  /** The current state of a job. */
  async job(jobId: string): Promise<JobState> {
    return must(await this.api.retrieve(jobId));
  }

  /** Cancels a job; it is not billed. */
  async cancel(jobId: string): Promise<JobState> {
    return must(await this.api.cancel(jobId));
  }

  /** Deletes a job with all its data. */
  async delete(jobId: string): Promise<void> {
    must(await this.api.remove(jobId));
  }

  /** Billed usage by UTC day and kind; the last 30 days by default. */
  async usage(range: { readonly from?: string; readonly to?: string } = {}): Promise<Usage> {
    return must(await this.api.usage(range));
  }

  /** Resolves a recording to bytes or an address; `rollcall-client/node` overrides it for file names. */
  protected place(recording: Recording): Promise<PlacedRecording> {
    return placeOf(recording);
  }

  private async run<T>(
    recording: Recording,
    start: StartJob,
    { onProgress, signal }: JobOptions,
  ): Promise<{ jobId: string; output: T }> {
    const placed = await this.place(recording);
    const url = 'url' in placed ? placed.url : await this.upload(placed, { onProgress, signal });
    const { jobId } = must(await start(url));
    let fraction = 0;
    const onUpdate = ({ status, progress = 0 }: JobState): void => {
      // A job that has ended reports no progress.
      fraction = status === 'succeeded' ? 1 : Math.max(fraction, progress);
      onProgress?.({ stage: 'running', fraction });
    };
    const ended = await this.api.wait(jobId, { signal, onUpdate });
    if (signal?.aborted) {
      await this.api.cancel(jobId);
      throw signal.reason;
    }
    const { status, output } = must(ended);
    if (status === 'succeeded' && output) return { jobId, output: output as T };
    const { error, code } = (output ?? {}) as Partial<ErrorOutput>;
    const kind = status === 'canceled' ? 'canceled' : 'failed';
    throw new RollcallError(kind, error ?? `The job ${status}, or its output has expired.`, { jobId, code });
  }

  private async upload(
    file: Exclude<PlacedRecording, { url: string }>,
    { onProgress, signal }: JobOptions,
  ): Promise<string> {
    const report = (sentBytes: number) =>
      onProgress?.({ stage: 'uploading', fraction: file.size === 0 ? 1 : Math.min(1, sentBytes / file.size) });
    report(0);
    const name = `client/${randomId()}`;
    // Not every browser can send streams, and `fetch` reports no progress.
    const isBrowser = typeof XMLHttpRequest === 'function' && file instanceof Blob;
    const sent = isBrowser
      ? await this.api.upload(name, file, undefined, signal, putWithProgress(report))
      : await this.api.upload(name, () => countedStream(file.stream(), report), file.size, signal);
    signal?.throwIfAborted();
    return must(sent);
  }
}

function must<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  const { error } = outcome;
  throw new RollcallError(error.kind, error.message, error.kind === 'unreachable' ? {} : error);
}
