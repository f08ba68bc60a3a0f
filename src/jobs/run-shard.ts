import { release } from '../audio/memory.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { encodePart } from '../diarization/part.ts';
import { analyseShard } from '../diarization/shard.ts';
import { CHUNK_SAMPLES, readChunks } from '../ingest/chunks.ts';
import { requestIngest } from './ingest.ts';
import { findIngest, tagOf } from './ingest-state.ts';
import { chunkKey, partKey } from './keys.ts';
import type { ShardMessage } from './messages.ts';
import type { Engine, IngestState, JobPorts } from './ports.ts';
import { firstChunkOf, OVERRUN_SAMPLES, placeOf, readyShards, SHARD_SAMPLES } from './shards.ts';
import { StageClock } from './stage-clock.ts';
import type { BegunStep } from './step.ts';

const SAMPLE_RATE_HZ = 16000;

/**
 * Begins one shard: its part is made from the chunks of the recording. Idempotent by (job, shard): the part does not
 * depend on the invocation that makes it. D1 is asked for nothing as long as all goes well.
 *
 * @param turnWaitMs how long the message has waited for its turn in the isolate, for the log
 * @returns undefined where nothing is to be done
 */
export async function beginShard(
  ports: JobPorts,
  { jobId, shard }: ShardMessage,
  turnWaitMs: number,
): Promise<BegunStep | undefined> {
  const state = (await findIngest(ports, jobId))?.state;
  if (!state) {
    // Of another version of the service or other models, unless the job has ended.
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
      // A run that died may have stored it.
      if (!(await ports.objects.exists(key))) {
        const work = { jobId, shard, state, tag, turnWaitMs, pulse, report: (read: number) => (fraction = read) };
        const part = await analyse(ports, work);
        await ports.objects.put(key, part);
        release(part);
      }
      // Of another file or version than is read now: the object hands out the shards of that one.
      if (!(await ports.progress.partDone(jobId, shard, tag))) {
        ports.log('warn', 'part_not_counted', { jobId, shard });
      }
    },
  };
}

/**
 * The object of the job hands out shards of another version of the service, or of another file, or has handed out less
 * than this one. What this version reads is handed out again: of two versions that take turns after a deployment only
 * one stays.
 */
export async function handOutAgain(ports: JobPorts, jobId: string, state: IngestState): Promise<void> {
  const tag = tagOf(ports, state);
  await ports.progress.begin(jobId, tag);
  if (state.recording) return ports.progress.expect(jobId, tag, state.recording.shardCount);
  await ports.progress.ready(jobId, tag, readyShards(state.chunks * CHUNK_SAMPLES));
  // Another version may have read the recording to its end meanwhile: then nobody continues with this one's reading.
  await requestIngest(ports, jobId);
}

interface ShardWork {
  readonly jobId: string;
  readonly shard: number;
  readonly state: IngestState;
  readonly tag: string;
  readonly turnWaitMs: number;
  readonly pulse: () => Promise<void>;
  /** Told how much of the shard was read, 0…1. */
  readonly report: (fraction: number) => void;
}

async function analyse(ports: JobPorts, work: ShardWork): Promise<Uint8Array> {
  const { jobId, shard, state, tag, turnWaitMs, pulse, report } = work;
  const engine: Engine = await ports.engine(state.model);
  if (engine.segmentation.info.windowSamples > OVERRUN_SAMPLES)
    throw new Error('windows are longer than a shard reads on');
  // While the end of the recording is not known, a shard is handed out only where it is far enough away to make no
  // difference.
  const totalSamples = state.recording?.totalSamples ?? Number.MAX_SAFE_INTEGER;
  const { channel, number } = placeOf(shard, state.recording);
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
  const whole = { startSample, endSample, totalSamples };
  // The clock pauses after every run of a model and every stretch of samples: a second pause would only leave more for
  // the garbage collector.
  const part = await analyseShard(counted, whole, clock.engine(engine), settingsOf(state.model), noPause);
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
