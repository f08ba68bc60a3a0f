import { type AudioError, type ByteSource, type Result, SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { isOutOfBounds } from '../audio/block-reader.ts';
import {
  type AudioPorts,
  type Checkpoint,
  DAMAGED_SIZE,
  Recording,
  type RecordingEnd,
  type RecordingFacts,
} from '../audio/recording.ts';
import { CHUNK_SAMPLES, ChunkBuffer } from './chunks.ts';

/** Audio decoded between two pauses, tens of milliseconds of work: other requests use the same thread. */
const PAUSE_SAMPLES = 8 * SAMPLE_RATE_HZ;
/**
 * Maximum decoded samples of all channels in one invocation: six hours of stereo at 44.1 kHz, measured as 70 to 90 s of
 * CPU time of the 300 s that the platform allows.
 */
const MAX_CHANNEL_SAMPLES = 6 * 3600 * 2 * 44_100;
/**
 * Reading time of one invocation; then it hands over to the next one. A queue delivers other messages and adds
 * consumers only when an invocation has ended. After a hand-over tens of seconds of audio are decoded again.
 */
const SLICE_MS = 8000;
/** Reading time for a source that cannot seek, and would be read again from its start. The platform allows 15 min. */
const MAX_INVOCATION_MS = 10 * 60_000;
/**
 * A source is slow if it delivers less than SLOW_AUDIO_RATE seconds of audio a second, measured after SLOW_AFTER_MS,
 * and at least SLOW_WAIT_SHARE of the time is spent waiting for it. The rest is decoding, which takes long at 192 kHz.
 */
const SLOW_AUDIO_RATE = 50;
const SLOW_AFTER_MS = 2000;
const SLOW_WAIT_SHARE = 0.5;
/** A slow source is copied only if the rest takes longer than this: until then it occupies the consumer. */
const SLOW_REST_MS = 20_000;
/** A source that sends nothing for this long is slow as well. */
const SILENCE_MS = 2000;
const CHECK_EVERY_MS = 1000;
/** Bytes that are read before a pass is admitted, so that a very slow source does not occupy memory. */
const BYTES_BEFORE_ADMISSION = 1 << 18;

export interface PassPorts {
  readonly audio: AudioPorts;
  /** Waits until there is memory for another pass. */
  readonly admit: () => Promise<void>;
  readonly now: () => number;
  /** Lets other requests run; the platform's clock advances only here. */
  readonly pause: () => Promise<void>;
  /** Stores a chunk. */
  readonly store: (chunk: number, bytes: Uint8Array) => Promise<void>;
  /** Called when `chunks` chunks are stored. Another invocation can continue after them from the checkpoint. */
  readonly stored: (chunks: number, checkpoint: Checkpoint, facts: RecordingFacts) => Promise<void>;
  /** Share of the file that was read, 0…1. */
  readonly progress: (share: number) => Promise<void>;
}

export interface PassOptions {
  /** Checkpoint from which to continue; without it, the start. */
  readonly from?: Checkpoint;
  /** Channel to read, from 0; without it, the mean of all. */
  readonly channel?: number;
  readonly maxSeconds: number;
  /** Whether the pass ends as `slow` if the source is slow. */
  readonly endsWhenSlow: boolean;
}

/** How a pass ended. */
export type PassEnd =
  | { readonly kind: 'whole'; readonly facts: RecordingFacts; readonly end: RecordingEnd; readonly chunks: number }
  /** The invocation's time is used up: the next one continues from the last checkpoint. */
  | { readonly kind: 'spent' }
  | { readonly kind: 'slow' }
  | { readonly kind: 'too_long' }
  | { readonly kind: 'failed'; readonly error: AudioError };

/**
 * One forward pass over a recording: decodes it to 16 kHz mono and stores that in chunks of fixed length. The content
 * of a chunk does not depend on the start of the pass. While a chunk is stored the next one is decoded.
 *
 * @throws SeekNeeded if the container needs a source that can seek; also errors of source and storage
 */
export async function ingest(source: ByteSource, ports: PassPorts, options: PassOptions): Promise<PassEnd> {
  const pace = new Pace(source, ports, options.endsWhenSlow);
  let recording: Recording | undefined;
  try {
    const opened: Result<Recording, AudioError> = await Recording.open(
      pace.source,
      ports.audio,
      options.from,
      options.channel,
    );
    if (!opened.ok) return { kind: 'failed', error: opened.error };
    recording = opened.value;
    return await storeAll(recording, source, pace, ports, options);
  } catch (error) {
    if (error instanceof SourceSlow) return { kind: 'slow' };
    if (isOutOfBounds(error)) return { kind: 'failed', error: DAMAGED_SIZE.error };
    throw error;
  } finally {
    pace.close();
    recording?.close();
  }
}

class SourceSlow extends Error {
  override readonly name = 'SourceSlow';
}

/**
 * Measures the rate of a source at every read of its stream. A check per block would come too late: a very slow server
 * needs minutes for one.
 */
class Pace {
  /** Seconds of audio decoded so far. */
  audioSeconds = 0;
  #startedAt: number | undefined;
  #waitedMs = 0;
  #receivedBytes = 0;
  #isAdmitted = false;
  /** The pending read: its start, and the function that rejects it. */
  #pendingRead: { readonly since: number; readonly reject: (error: Error) => void } | undefined;
  readonly #timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly original: ByteSource,
    private readonly ports: Pick<PassPorts, 'now' | 'admit'>,
    private readonly endsWhenSlow: boolean,
  ) {
    if (!endsWhenSlow) return;
    this.#timer = setInterval(() => {
      if (this.#pendingRead && ports.now() - this.#pendingRead.since > SILENCE_MS) this.#pendingRead.reject(slow());
    }, CHECK_EVERY_MS);
  }

  /** The original source with measured streams. @throws SourceSlow from its streams */
  get source(): ByteSource {
    const { original } = this;
    const { sizeBytes, canSeek } = original;
    return {
      sizeBytes,
      canSeek,
      read: (offset, length) => original.read(offset, length),
      open: async (offset) => {
        const stream = await original.open(offset);
        let at = offset;
        return {
          read: async () => {
            const readAt = this.ports.now();
            const bytes = await this.#watched(() => stream.read());
            this.#waitedMs += this.ports.now() - readAt;
            at += bytes?.length ?? 0;
            if (bytes) await this.#received(bytes.length, sizeBytes - at);
            return bytes;
          },
          close: () => stream.close(),
        };
      },
    };
  }

  close(): void {
    if (this.#timer !== undefined) clearInterval(this.#timer);
  }

  #watched<T>(read: () => Promise<T>): Promise<T> {
    if (!this.endsWhenSlow) return read();
    return new Promise<T>((resolve, reject) => {
      this.#pendingRead = { since: this.ports.now(), reject };
      read().then(resolve, reject);
    }).finally(() => {
      this.#pendingRead = undefined;
    });
  }

  async #received(bytes: number, restBytes: number): Promise<void> {
    this.#receivedBytes += bytes;
    if (!this.#isAdmitted && this.#receivedBytes > BYTES_BEFORE_ADMISSION) {
      this.#isAdmitted = true;
      await this.ports.admit();
      this.#startedAt = undefined;
    }
    const now = this.ports.now();
    // The first read may have waited for a connection, and admission for other passes.
    if (this.#startedAt === undefined) this.#waitedMs = 0;
    this.#startedAt ??= now;
    const tookMs = now - this.#startedAt;
    const isFast = this.audioSeconds >= (SLOW_AUDIO_RATE * tookMs) / 1000 || this.#waitedMs < SLOW_WAIT_SHARE * tookMs;
    if (!this.endsWhenSlow || tookMs <= SLOW_AFTER_MS || isFast) return;
    if (this.restMs(restBytes, tookMs) > SLOW_REST_MS) throw slow();
  }

  /** Time for the remaining bytes at the rate so far. */
  restMs(restBytes: number, tookMs: number): number {
    return (tookMs * restBytes) / Math.max(1, this.#receivedBytes);
  }
}

const slow = () => new SourceSlow('the source is slow');

async function storeAll(
  recording: Recording,
  { sizeBytes, canSeek }: ByteSource,
  pace: Pace,
  ports: PassPorts,
  { from, maxSeconds, endsWhenSlow }: PassOptions,
): Promise<PassEnd> {
  const { facts } = recording;
  const startedAt = ports.now();
  const startSample = from?.sample ?? 0;
  const buffer = new ChunkBuffer();
  let chunks = startSample / CHUNK_SAMPLES;
  let sample = startSample;
  let pausedAt = startSample;
  let storing: Promise<void> = Promise.resolve();
  const flush = async (): Promise<void> => {
    await storing;
    const [chunk, bytes] = [chunks++, buffer.take()];
    const checkpoint = recording.checkpointAt(chunks * CHUNK_SAMPLES);
    storing = ports.store(chunk, bytes).then(() => ports.stored(chunk + 1, checkpoint, facts));
    // The failure is handled where the promise is awaited.
    storing.catch(() => undefined);
  };
  const channelSamples = () => ((sample - startSample) / SAMPLE_RATE_HZ) * facts.sampleRateHz * facts.channels;
  try {
    for await (const block of recording.samples()) {
      for (let at = 0; at < block.length; ) {
        at += buffer.add(block.subarray(at));
        if (buffer.isFull) await flush();
      }
      sample += block.length;
      pace.audioSeconds = (sample - startSample) / SAMPLE_RATE_HZ;
      if (sample > maxSeconds * SAMPLE_RATE_HZ) return { kind: 'too_long' };
      if (sample - pausedAt < PAUSE_SAMPLES) continue;
      pausedAt = sample;
      await ports.pause();
      await ports.progress(recording.readBytes / sizeBytes);
      const tookMs = ports.now() - startedAt;
      const isSpent = channelSamples() > MAX_CHANNEL_SAMPLES || tookMs > (canSeek ? SLICE_MS : MAX_INVOCATION_MS);
      // An invocation stores at least one chunk: otherwise the recording would never be finished.
      if (isSpent && chunks * CHUNK_SAMPLES > startSample) {
        await storing;
        return { kind: 'spent' };
      }
      const restMs = pace.restMs(sizeBytes - recording.readBytes, tookMs);
      // Unlike this source, a copy can be read from the middle.
      if (endsWhenSlow && !canSeek && tookMs > SLICE_MS && restMs > SLOW_REST_MS) return { kind: 'slow' };
    }
    const { end } = recording;
    if (!end.ok) return { kind: 'failed', error: end.error };
    await storing;
    if (buffer.samples > 0) await ports.store(chunks++, buffer.take());
    return { kind: 'whole', facts, end: end.value, chunks };
  } finally {
    // Also after a failure: the next run must not find a chunk or a state that is still being written.
    await storing.catch(() => undefined);
  }
}
