import { release } from '../audio/memory.ts';
import type { EmbeddingPort, SegmentationPort } from '../diarization/model-ports.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { encodePart } from '../diarization/part.ts';
import { analyseShard } from '../diarization/shard.ts';
import { CHUNK_SAMPLES, readChunks } from '../ingest/chunks.ts';
import type { RequestPorts } from './ingest.ts';
import { requestIngest } from './ingest.ts';
import {
  findIngest,
  firstChunkOf,
  OVERRUN_SAMPLES,
  readyShards,
  SHARD_SAMPLES,
  shardPosition,
  tagOf,
} from './ingest-state.ts';
import type { BegunStep, ShardMessage } from './job-messages.ts';
import type { Engine, JobPorts } from './job-ports.ts';
import type { IngestState } from './job-record.ts';
import { chunkKey, partKey } from './work-keys.ts';

type HandOutPorts = RequestPorts & Pick<JobPorts, 'progress' | 'work'>;
type ShardPorts = HandOutPorts & Pick<JobPorts, 'objects' | 'engine'>;

const SAMPLE_RATE_HZ = 16000;

/**
 * Begins one shard, whose part is made from the chunks of the recording. Idempotent by (job, shard): the part does not
 * depend on the invocation. D1 is not read unless something fails.
 *
 * @param turnWaitMs how long the message has waited for the isolate's mutex, for the log
 * @returns undefined if there is nothing to do
 */
export async function beginShard(
  ports: ShardPorts,
  { jobId, shard }: ShardMessage,
  turnWaitMs: number,
): Promise<BegunStep | undefined> {
  const state = (await findIngest(ports, jobId))?.state;
  if (!state) {
    // The stored work is from another version of the service or other models, unless the job has ended.
    await requestIngest(ports, jobId);
    return undefined;
  }
  const tag = tagOf(ports, state);
  const start = await ports.progress.startShard(jobId, shard, tag);
  if (start.kind === 'unknown') await handOutAgain(ports, jobId, state);
  if (start.kind !== 'run') return undefined;
  let fraction = 0;
  return {
    starts: start.starts,
    renew: () => ports.progress.report(jobId, shard, tag, fraction),
    putBack: (dueAt, isForgiven) => ports.progress.putBack(jobId, shard, tag, dueAt, isForgiven),
    async run(pulse) {
      const key = partKey(jobId, shard, tag);
      // An earlier run may have stored the part and crashed.
      if (!(await ports.objects.exists(key))) {
        const work = { jobId, shard, state, tag, turnWaitMs, pulse, report: (read: number) => (fraction = read) };
        const part = await analyse(ports, work);
        await ports.objects.put(key, part);
        release(part);
      }
      // A part of another file or version does not count; the job's object hands out the shards of the current one.
      if (!(await ports.progress.partDone(jobId, shard, tag))) {
        ports.log('warn', 'part_not_counted', { jobId, shard });
      }
    },
  };
}

/**
 * Makes the job's object hand out the shards that this version has read. The object had the shards of another version
 * or file, or fewer shards. After a deployment two versions may do this alternately, until only one is left.
 */
export async function handOutAgain(ports: HandOutPorts, jobId: string, state: IngestState): Promise<void> {
  const tag = tagOf(ports, state);
  await ports.progress.begin(jobId, tag);
  if (state.recording) return ports.progress.expect(jobId, tag, state.recording.shardCount);
  await ports.progress.ready(jobId, tag, readyShards(state.chunks * CHUNK_SAMPLES));
  // Continue reading: another version may have finished the ingest step, which this version has not.
  await requestIngest(ports, jobId);
}

interface ShardWork {
  readonly jobId: string;
  readonly shard: number;
  readonly state: IngestState;
  readonly tag: string;
  readonly turnWaitMs: number;
  readonly pulse: () => Promise<void>;
  /** Called with the share of the shard that was read, 0…1. */
  readonly report: (fraction: number) => void;
}

async function analyse(ports: ShardPorts, work: ShardWork): Promise<Uint8Array> {
  const { jobId, shard, state, tag, turnWaitMs, pulse, report } = work;
  const engine: Engine = await ports.engine(state.model);
  if (engine.segmentation.info.windowSamples > OVERRUN_SAMPLES)
    throw new Error('windows are longer than the overrun of a shard');
  // While the length of the recording is unknown, only shards are handed out whose overrun is stored as well.
  const totalSamples = state.recording?.totalSamples ?? Number.MAX_SAFE_INTEGER;
  const { channel, number } = shardPosition(shard, state.recording);
  const startSample = number * SHARD_SAMPLES;
  const endSample = Math.min(startSample + SHARD_SAMPLES, totalSamples);
  const readTo = Math.min(endSample + OVERRUN_SAMPLES, totalSamples);
  const clock = new StageClock(ports.now, pulse);
  let readCount = 0;
  const chunks = readChunks(
    (chunk, offset, length) =>
      ports.objects.getRange(chunkKey(jobId, firstChunkOf(channel) + chunk, tag), offset, length),
    startSample,
    readTo,
  );
  const counted = (async function* () {
    for await (const block of clock.samples(chunks)) {
      readCount += block.length;
      report(readCount / (readTo - startSample));
      yield block;
    }
  })();
  const range = { startSample, endSample, totalSamples };
  // No pause here: the clock already pauses after each model run and each block of samples.
  const part = await analyseShard(counted, range, clock.engine(engine), settingsOf(state.model), noPause);
  const bytes = encodePart(part);
  release(part.probabilities, part.speakers.embeddings, part.subsegments.embeddings);
  ports.log('info', 'shard_done', {
    jobId,
    shard,
    audioSeconds: (endSample - startSample) / SAMPLE_RATE_HZ,
    partBytes: bytes.length,
    wasmBytes: engine.memoryBytes(),
    turnWaitMs,
    ...clock.finish(),
  });
  return bytes;
}

const noPause = async (): Promise<void> => undefined;

/** Milliseconds spent per stage of a shard. */
export interface StageTimes {
  decodeMs: number;
  segmentationMs: number;
  embeddingMs: number;
  totalMs: number;
}

/** Four seconds at 16 kHz: about ten milliseconds of decoding. */
const GATHERED_SAMPLES = 64_000;

/** Maximum length of a block; a longer one would allocate the array again. */
const LONGEST_BLOCK_SAMPLES = 16_000;

/**
 * Measures the time of model runs and of reading samples. The platform's clock advances only on I/O, so every measured
 * step ends with a pause. The pause also lets a busy isolate handle other requests between windows.
 */
export class StageClock {
  readonly times: StageTimes = { decodeMs: 0, segmentationMs: 0, embeddingMs: 0, totalMs: 0 };
  #startedAt: number;

  constructor(
    private readonly now: () => number,
    private readonly pause: () => Promise<void>,
  ) {
    this.#startedAt = now();
  }

  /**
   * The same samples in blocks of four seconds or more: a pause after each short block would cost more time than the
   * reading, and leave many promises on the heap.
   *
   * @returns blocks that are valid until the next one is requested
   */
  async *samples(blocks: AsyncIterable<Float32Array>): AsyncGenerator<Float32Array> {
    const iterator = blocks[Symbol.asyncIterator]();
    let gathered = new Float32Array(GATHERED_SAMPLES + LONGEST_BLOCK_SAMPLES);
    let isDone = false;
    const gather = async (): Promise<number> => {
      let filled = 0;
      while (filled < GATHERED_SAMPLES) {
        const next = await iterator.next();
        if (next.done) {
          isDone = true;
          break;
        }
        if (filled + next.value.length > gathered.length) gathered = grown(gathered, filled + next.value.length);
        gathered.set(next.value, filled);
        filled += next.value.length;
      }
      return filled;
    };
    try {
      while (!isDone) {
        const filled = await this.#timed('decodeMs', gather);
        if (filled > 0) yield gathered.subarray(0, filled);
      }
    } finally {
      // Close the source if the reader stops early.
      await iterator.return?.();
      release(gathered);
    }
  }

  segmentation(port: SegmentationPort): SegmentationPort {
    if (port.form === 'whole') {
      return { ...port, run: (window: Float32Array) => this.#timed('segmentationMs', () => port.run(window)) };
    }
    return {
      ...port,
      run: (powers: Float32Array, frames: number) => this.#timed('segmentationMs', () => port.run(powers, frames)),
    };
  }

  embedding(port: EmbeddingPort): EmbeddingPort {
    if (port.form === 'whole') {
      return { ...port, embed: (feats, frames) => this.#timed('embeddingMs', () => port.embed(feats, frames)) };
    }
    return {
      ...port,
      trunk: (feats, frames) => this.#timed('embeddingMs', () => port.trunk(feats, frames)),
      head: (pooled, batch) => this.#timed('embeddingMs', () => port.head(pooled, batch)),
    };
  }

  engine(engine: Engine): Engine {
    return {
      ...engine,
      segmentation: this.segmentation(engine.segmentation),
      secondSegmentation: engine.secondSegmentation && this.segmentation(engine.secondSegmentation),
      embedding: this.embedding(engine.embedding),
    };
  }

  /** Rounded for the log. The total also covers filterbank, mel powers and pooling. */
  finish(): StageTimes {
    this.times.totalMs = this.now() - this.#startedAt;
    const rounded = { ...this.times };
    for (const stage of Object.keys(rounded) as (keyof StageTimes)[]) rounded[stage] = Math.round(rounded[stage]);
    return rounded;
  }

  async #timed<T>(stage: keyof StageTimes, work: () => Promise<T>): Promise<T> {
    const from = this.now();
    try {
      return await work();
    } finally {
      await this.pause();
      this.times[stage] += this.now() - from;
    }
  }
}

function grown(samples: Float32Array, minLength: number): Float32Array<ArrayBuffer> {
  const larger = new Float32Array(Math.max(minLength, 2 * samples.length));
  larger.set(samples);
  return larger;
}
