import { type Result, SeekNeeded } from '../audio/audio-ports.ts';
import type { Checkpoint, RecordingFacts } from '../audio/recording.ts';
import { CHUNK_SAMPLES } from '../ingest/chunks.ts';
import { ingest, type PassEnd } from '../ingest/pass.ts';
import { RECORDING_MAX_BYTES } from './app-services.ts';
import type { DispatchPorts } from './dispatch.ts';
import { dispatch, JobGone, QUEUE_LEASE_MS, sendAgain } from './dispatch.ts';
import type { EndPorts } from './end-job.ts';
import { admitWaiting, failJob, removeWork } from './end-job.ts';
import { RetryStep } from './faults.ts';
import {
  findIngest,
  firstChunkOf,
  IngestOvertaken,
  MAX_SEPARATE_CHANNELS,
  readyShards,
  SHARD_SECONDS,
  SHORT_SHARDS,
  type StoredIngest,
  saveIngest,
  shardCountOf,
  tagOf,
} from './ingest-state.ts';
import { outboxId } from './job-messages.ts';
import type { OpenSource, StepPorts } from './job-ports.ts';
import type { IngestState, JobRecord } from './job-record.ts';
import { isTerminal } from './job-record.ts';
import type { JobIngest, JobOutbox, JobSteps } from './job-store.ts';
import { isTemporary, type SourceError, SourceReadError } from './source-error.ts';
import { type Slot, Slots } from './upload-bodies.ts';
import { chunkKey, copyKey, INLINE_URL, inlineUrlKey } from './work-keys.ts';

/** Ports to request that a recording is read again. */
export type RequestPorts = DispatchPorts & { readonly store: Pick<JobSteps, 'nextStep'> };
type IngestPorts = EndPorts &
  StepPorts<
    'sources' | 'copies' | 'media' | 'codecs' | 'work' | 'pause',
    JobIngest & Pick<JobSteps, 'handOver'> & Pick<JobOutbox, 'outboxRow'>
  >;

/** Maximum size and duration of a recording (contract §7). */
const LIMITS = {
  recording: {
    maxBytes: RECORDING_MAX_BYTES,
    maxSize: '1 GiB',
    maxSeconds: 24 * 3600,
    tooLong: 'The recording is longer than 24 hours; split it into shorter files.',
  },
  voice: {
    maxBytes: 100 * 1024 ** 2,
    maxSize: '100 MiB',
    maxSeconds: 30,
    tooLong: 'The recording is longer than 30 seconds, the maximum for a voiceprint; send a part of it.',
  },
} as const;

/** Maximum silence that encoders add at both ends without declaring it; it must not count against the limit. */
const PADDING_SECONDS = 0.2;
const MAX_FETCH_TRIES = 3;
const REPORT_EVERY_MS = 5000;
/** Minimum number of shards to reserve credit for: an hour. */
const RESERVED_SHARDS = 12;

/** Each pass holds two chunks and some blocks of the file, about 15 MB; the isolate has 128 MB and also analyses. */
const passes = new Slots({ slots: 2, perAccount: 2 });
const NO_SLOT_PAUSE_SECONDS = 2;

/**
 * First step of a job: reads its recording once and stores it as chunks of 16 kHz samples. A shard is sent as soon as
 * its chunks are stored. Chunks of earlier invocations are reused; a recording that has changed since is read again.
 *
 * @param attempt 1 for the first attempt; attempts with faults of the platform do not count
 * @param signal aborted when the job has ended
 * @throws RetryStep on a temporary fault of the network; SourceReadError if the source fails during the read; JobGone
 *   if the job ended meanwhile
 */
export async function ingestJob(
  ports: IngestPorts,
  job: JobRecord,
  attempt: number,
  signal?: AbortSignal,
): Promise<void> {
  const id = outboxId({ step: 'ingest', jobId: job.id });
  if (job.status !== 'running' && !(await ports.store.start(job.id, ports.now()))) {
    const now = await ports.store.find(job.id);
    if (!now || isTerminal(now.status)) throw new JobGone(job.id);
  }
  let slot: Slot | undefined;
  const admit = async (): Promise<void> => {
    slot ??= await passes.take(job.accountId);
    if (!slot) throw new NoSlot();
  };
  const checkRunning = (): void => {
    if (signal?.aborted) throw new JobGone(job.id);
    slot?.renew();
  };
  try {
    await new Ingest(ports, job, attempt, admit, checkRunning).run();
  } catch (error) {
    if (error instanceof IngestOvertaken) ports.log('warn', 'ingest_overtaken', { jobId: job.id });
    else if (error instanceof NoSlot) {
      // Waiting does not count as a failed attempt.
      await ports.store.handOver(id, ports.now() + QUEUE_LEASE_MS);
      await sendAgain(ports, { step: 'ingest', jobId: job.id }, NO_SLOT_PAUSE_SECONDS);
    } else throw error;
  } finally {
    slot?.release();
  }
}

/** All slots of the isolate are in use: another recording would exceed its memory. */
class NoSlot extends Error {
  override readonly name = 'NoSlot';
}

/**
 * Requests that the recording of a running job is read again: its stored work is from another version of the service
 * or other models. Only the first call sends a message. After a deployment hundreds of steps may call this at once, and
 * each would load the recording's server.
 */
export async function requestIngest(ports: RequestPorts, jobId: string): Promise<void> {
  if (!(await ports.store.nextStep(jobId, ['analyse', 'assemble', 'transcribe'], 'ingest', ports.now()))) return;
  ports.log('info', 'ingest_requested', { jobId });
  await dispatch(ports, { step: 'ingest', jobId });
}

/** The account's credit does not cover the recording. */
const unpaid = (durationSeconds: number) => ({
  code: 'payment_required',
  message:
    `The recording is ${Math.ceil(durationSeconds)} s long, and the account has neither an active subscription nor ` +
    'enough credit for it in addition to that reserved for its unfinished jobs and streams.',
});

const tooManyChannels = (channels: number) => ({
  code: 'audio_too_many_channels',
  message: `The recording has ${channels} channels; at most ${MAX_SEPARATE_CHANNELS} can be diarized separately.`,
});

/** One run of the step. */
class Ingest {
  readonly #limits: (typeof LIMITS)[keyof typeof LIMITS];
  #etag: string | undefined;
  /** Shards that the object of the job may hand out. */
  #ready = 0;
  /** Shards for which credit is reserved. */
  #reserved = 0;
  /** No credit could be reserved for more shards; whether the account can pay is decided at the recording's end. */
  #isUnpaid = false;
  /** Progress since the last saved state: the state is saved only when a chunk completes a shard. */
  #unsaved: Pick<IngestState, 'chunks' | 'checkpoint'> | undefined;
  #reportedAt: number;

  constructor(
    private readonly ports: IngestPorts,
    private readonly job: JobRecord,
    private readonly attempt: number,
    /** Idempotent. @throws NoSlot */
    private readonly admit: () => Promise<void>,
    /** Called every few seconds of audio. @throws JobGone when the job has ended */
    private readonly checkRunning: () => void,
  ) {
    this.#limits = LIMITS[job.kind === 'voiceprint' ? 'voice' : 'recording'];
    this.#reportedAt = ports.now();
  }

  async run(): Promise<void> {
    const { ports, job } = this;
    const stored = await findIngest(ports, job.id);
    this.#etag = stored?.etag;
    if (stored?.state.recording) return this.#finish(stored.state);
    const opened = await this.#open();
    if (!opened.ok) return this.#refuse(opened.error);
    if (opened.value === 'copy') return this.#copy();
    const { source, identity, close } = opened.value;
    try {
      const state = await this.#begin(stored, identity);
      const end = await this.#pass(source, state).catch((error: unknown) => {
        if (error instanceof SeekNeeded) return { kind: 'slow' } as const;
        // The file has changed: the next attempt reads the new one from its start.
        const isChanged = error instanceof SourceReadError && error.error.kind === 'changed' && this.#isRemote;
        if (isChanged && this.attempt < MAX_FETCH_TRIES) throw new RetryStep(error.message, this.attempt);
        throw error;
      });
      await this.#settle(end, state);
    } finally {
      close?.();
    }
  }

  get #isSeparate(): boolean {
    return this.job.kind === 'diarize' && this.job.request.channels === 'separate';
  }

  get #isRemote(): boolean {
    const { url } = this.job.request;
    return !url.startsWith('media://') && url !== INLINE_URL;
  }

  /** State from which reading begins: after the stored chunks of the same bytes, else at the start. */
  async #begin(stored: StoredIngest | undefined, identity: string): Promise<IngestState> {
    const { ports, job } = this;
    const start = {
      identity,
      model: job.request.model,
      chunks: 0,
      checkpoint: { sample: 0 },
      ...(this.#isSeparate && { channel: 0 }),
    };
    let state: IngestState = stored?.state ?? { ...start, generation: 0 };
    const isChanged = stored !== undefined && stored.state.identity !== identity;
    if (isChanged) {
      ports.log('warn', 'source_changed', { jobId: job.id });
      state = { ...start, generation: stored.state.generation + 1 };
    }
    // Save before the first chunk: if two runs read different files, only one may write chunks of this generation.
    if (isChanged || !stored) await this.#save(state);
    // The new tag drops the shards and parts of an earlier file.
    await ports.progress.begin(job.id, tagOf(ports, state));
    await this.#handOut(state, readyShards(state.chunks * CHUNK_SAMPLES));
    return state;
  }

  #pass(source: OpenSource['source'], state: IngestState): Promise<PassEnd> {
    const { ports, job } = this;
    const tag = tagOf(ports, state);
    return ingest(
      source,
      {
        audio: ports.codecs(),
        admit: this.admit,
        now: ports.now,
        pause: async () => {
          this.checkRunning();
          await ports.pause();
        },
        store: (chunk, bytes) =>
          ports.objects.put(chunkKey(job.id, firstChunkOf(state.channel ?? 0) + chunk, tag), bytes),
        stored: (chunks, checkpoint, facts) => this.#stored(state, chunks, checkpoint, facts),
        progress: (share) => this.#report(share),
      },
      {
        from: state.checkpoint,
        channel: state.channel,
        maxSeconds: this.#limits.maxSeconds + PADDING_SECONDS,
        endsWhenSlow: this.#isRemote && !this.#isCopied,
      },
    );
  }

  async #stored(state: IngestState, chunks: number, checkpoint: Checkpoint, facts: RecordingFacts): Promise<void> {
    this.#unsaved = { chunks, checkpoint };
    const ready = readyShards(chunks * CHUNK_SAMPLES);
    if (ready === this.#ready) return;
    if (this.#ready === 0) this.ports.log('info', 'first_shard_ready', { jobId: this.job.id, format: facts.format });
    await this.#save({ ...state, chunks, checkpoint });
    await this.#handOut(state, ready);
  }

  async #settle(end: PassEnd, state: IngestState): Promise<void> {
    const { ports, job } = this;
    const id = outboxId({ step: 'ingest', jobId: job.id });
    switch (end.kind) {
      case 'failed':
        return failJob(ports, job.id, { code: `audio_${end.error.kind}`, message: end.error.message });
      case 'too_long':
        return failJob(ports, job.id, { code: 'audio_too_long', message: this.#limits.tooLong });
      case 'slow':
        return this.#copy();
      case 'spent':
        // Save the progress, or the next invocation might begin where this one began.
        if (this.#unsaved) await this.#save({ ...state, ...this.#unsaved });
        ports.log('info', 'ingest_handed_over', { jobId: job.id });
        await ports.store.handOver(id, ports.now() + QUEUE_LEASE_MS);
        return sendAgain(ports, { step: 'ingest', jobId: job.id });
      case 'whole': {
        const { facts, chunks } = end;
        const { channels } = facts;
        if (state.channel !== undefined && channels > MAX_SEPARATE_CHANNELS)
          return failJob(ports, job.id, tooManyChannels(channels));
        if (state.channel !== undefined && state.channel + 1 < channels) {
          await this.#save({ ...state, channel: state.channel + 1, chunks: 0, checkpoint: { sample: 0 } });
          await ports.store.handOver(id, ports.now() + QUEUE_LEASE_MS);
          return sendAgain(ports, { step: 'ingest', jobId: job.id });
        }
        const { totalSamples, durationSeconds, warning } = end.end;
        const separateChannels = this.#isSeparate ? channels : undefined;
        const recording = {
          facts,
          totalSamples,
          durationSeconds,
          shardCount: shardCountOf(totalSamples) * (separateChannels ?? 1),
          separateChannels,
          ...(warning !== undefined && { warning }),
        };
        const completed = { ...state, chunks, recording };
        await this.#save(completed);
        return this.#finish(completed);
      }
    }
  }

  /** Starts the analysis of a recording that was read as a whole. Idempotent. */
  async #finish(state: IngestState): Promise<void> {
    const { ports, job } = this;
    if (!state.recording) return;
    const { shardCount, durationSeconds, facts } = state.recording;
    const tag = tagOf(ports, state);
    await ports.progress.begin(job.id, tag);
    if (!(await ports.store.finishIngest(job, { shardCount, durationSeconds }, ports.now()))) {
      if (await ports.store.outboxRow(outboxId({ step: 'ingest', jobId: job.id })))
        return failJob(ports, job.id, unpaid(durationSeconds));
      await this.#dropIfEnded();
      return;
    }
    ports.log('info', 'job_ingested', { jobId: job.id, shards: shardCount, durationSeconds, format: facts.format });
    await ports.progress.expect(job.id, tag, shardCount);
    // The recording may be shorter than its reserved credit, which leaves room for waiting jobs.
    await admitWaiting(ports, job.accountId);
  }

  /** Removes the working data if the job was canceled or deleted meanwhile, but not if another run has finished. */
  async #dropIfEnded(): Promise<void> {
    const job = await this.ports.store.find(this.job.id);
    if (!job || isTerminal(job.status)) await removeWork(this.ports, this.job.id);
  }

  /**
   * Hands out the first shards while the rest is read. Not for short jobs, whose length is known soon, and only for the
   * number of shards that the account can pay for: the total is known only at the end.
   */
  async #handOut(state: IngestState, ready: number): Promise<void> {
    const { ports, job } = this;
    this.#ready = ready;
    // With separate channels the number of shards is known only at the end.
    if (ready <= SHORT_SHARDS || this.#isSeparate) return;
    if (ready > this.#reserved) {
      // Double the reservation each time: a recording of a day needs six.
      const shards = Math.max(ready, RESERVED_SHARDS, 2 * this.#reserved);
      const isPaid = await ports.store.reserve(job, shards * SHARD_SECONDS, ports.now());
      this.#reserved = isPaid ? shards : Number.POSITIVE_INFINITY;
      this.#isUnpaid ||= !isPaid;
    }
    if (this.#isUnpaid) return;
    await ports.progress.ready(job.id, tagOf(ports, state), ready);
  }

  async #save(state: IngestState): Promise<void> {
    this.#etag = await saveIngest(this.ports, this.job.id, state, this.#etag);
    this.#unsaved = undefined;
  }

  async #report(share: number): Promise<void> {
    const { ports, job } = this;
    const now = ports.now();
    // Each separate channel begins again at 0, and progress must not go back.
    if (this.#isSeparate || now - this.#reportedAt < REPORT_EVERY_MS) return;
    this.#reportedAt = now;
    // Only for progress bars: a failure is logged.
    await ports.progress.reportIngest(job.id, share).catch((error) => {
      ports.log('warn', 'progress_not_reported', { jobId: job.id, error: String(error) });
    });
  }

  async #refuse(error: SourceError): Promise<void> {
    // Copy the recording: the copy waits longer for a slow server.
    if (error.kind === 'timeout' && this.#isRemote) return this.#copy();
    if (isTemporary(error.kind) && this.attempt < MAX_FETCH_TRIES) throw new RetryStep(error.message, this.attempt);
    await failJob(this.ports, this.job.id, { code: `source_${error.kind}`, message: error.message });
  }

  /** `SourceCopy` sends the message of this step again when the copy is complete. */
  async #copy(): Promise<void> {
    const { ports, job } = this;
    ports.log('info', 'source_copied', { jobId: job.id });
    await ports.copies.request(job.id, job.request.url, this.#limits.maxBytes);
  }

  #isCopied = false;

  async #open(): Promise<Result<OpenSource | 'copy', SourceError>> {
    const { ports, job } = this;
    const { url } = job.request;
    const { maxBytes, maxSize } = this.#limits;
    if (url.startsWith('media://')) {
      // The upload must have been valid when the job was created; it may have expired since.
      const media = await ports.media.resolve(job.accountId, url.slice('media://'.length), job.createdAt);
      if (!media) {
        return { ok: false, error: { kind: 'not_found', message: `No media named ${url} has been uploaded.` } };
      }
      // The size of a direct upload to the bucket is checked here for the first time.
      if (media.sizeBytes > maxBytes) {
        const message = `The recording is larger than the limit of ${maxSize}.`;
        return { ok: false, error: { kind: 'too_large', message } };
      }
      return { ok: true, value: ports.sources.openObject(media) };
    }
    if (url === INLINE_URL) {
      // Take a slot first: memory holds the text and the recording at the same time.
      await this.admit();
      const inline = await ports.objects.get(inlineUrlKey(job.id));
      if (!inline)
        return { ok: false, error: { kind: 'gone', message: 'The audio of this request is no longer stored.' } };
      return ports.sources.open(new TextDecoder().decode(inline), maxBytes);
    }
    const copy = await ports.sources.findCopy(copyKey(job.id));
    this.#isCopied = copy !== undefined;
    return copy ? { ok: true, value: ports.sources.openObject(copy) } : ports.sources.open(url, maxBytes);
  }
}
