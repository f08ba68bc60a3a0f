import { release } from '../audio/index.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { CHUNK_SAMPLES, readChunks } from '../ingest/chunks.ts';
import { requestIngest } from './ingest.ts';
import { readIngest, tagOf } from './ingest-state.ts';
import { chunkKey, partKey } from './keys.ts';
import { createPulse, JobGone } from './lease.ts';
import { outboxId } from './messages.ts';
import type { Mutex } from './mutex.ts';
import type { Engine, IngestState, JobPorts, JobRecord } from './ports.ts';
import { OVERRUN_SAMPLES, readyShards, SHARD_SAMPLES } from './shards.ts';
import { StageClock } from './stage-clock.ts';

const SAMPLE_RATE_HZ = 16000;

/**
 * Analyses one shard from the chunks of its recording and stores its part. Idempotent by (job, shard): the part does
 * not depend on the invocation that makes it.
 *
 * @throws JobGone when the job ended meanwhile, or has no such shard
 */
export async function runShard(ports: JobPorts, mutex: Mutex, job: JobRecord, shard: number): Promise<void> {
  const id = outboxId({ step: 'shard', jobId: job.id, shard });
  if (job.status !== 'running') {
    await ports.store.settle(id);
    return;
  }
  const state = await readIngest(ports, job.id);
  const { recording, chunks } = state;
  // Left over from a longer file, or from another version: the recording is shorter.
  if (recording && shard >= recording.shardCount) throw new JobGone(job.id);
  if (!recording && shard >= readyShards(chunks * CHUNK_SAMPLES)) {
    // Left over from another version or another file: the ingest that stores the chunks sends the message.
    ports.log('info', 'shard_early', { jobId: job.id, shard });
    // An ingest of another version may have settled the message of this version's ingest: then the chunks would never
    // be stored.
    const isRead = (await ports.store.outboxRow(outboxId({ step: 'ingest', jobId: job.id }))) !== undefined;
    if (!isRead) await requestIngest(ports, job.id);
    return;
  }
  const tag = tagOf(ports, state);
  const key = partKey(job.id, shard, tag);
  if (!(await ports.objects.exists(key))) {
    await mutex.run(createPulse(ports, job.id, id), ports.sleep, async (pulse) => {
      // Another copy of the message may have made it while this one waited for its turn.
      if (await ports.objects.exists(key)) return;
      const part = await analyse(ports, job, state, shard, pulse);
      await ports.objects.put(key, part);
      release(part);
    });
  }
  // Counted before it is settled: dying in between repeats the count, which the counter tolerates.
  if (await ports.progress.partDone(job.id, shard, tag)) {
    await ports.store.settle(id);
    return;
  }
  ports.log('warn', 'part_not_counted', { jobId: job.id, shard });
  // The counter is of another version of the service, or of another file. Where this one is still what is read, it
  // counts again: of two versions that
  // took turns after a deployment only one continues.
  const now = await readIngest(ports, job.id);
  if (tagOf(ports, now) !== tag) return;
  await ports.progress.begin(job.id, tag);
  if (now.recording) await ports.progress.expect(job.id, tag, now.recording.shardCount);
  if (await ports.progress.partDone(job.id, shard, tag)) await ports.store.settle(id);
}

async function analyse(
  ports: JobPorts,
  job: JobRecord,
  state: IngestState,
  shard: number,
  pulse: () => Promise<void>,
): Promise<Uint8Array> {
  const engine: Engine = await ports.engine();
  if (engine.segmentation.info.windowSamples > OVERRUN_SAMPLES)
    throw new Error('windows are longer than a shard reads on');
  // While the end of the recording is not known, a shard is sent only where it is far enough away to make no
  // difference.
  const totalSamples = state.recording?.totalSamples ?? Number.MAX_SAFE_INTEGER;
  const startSample = shard * SHARD_SAMPLES;
  const endSample = Math.min(startSample + SHARD_SAMPLES, totalSamples);
  const readTo = Math.min(endSample + OVERRUN_SAMPLES, totalSamples);
  const clock = new StageClock(ports.now, pulse);
  const tag = tagOf(ports, state);
  let readCount = 0;
  const report = progressReporter(ports, job.id, shard, readTo - startSample);
  const chunks = readChunks(
    (chunk, offset, length) => ports.objects.getRange(chunkKey(job.id, chunk, tag), offset, length),
    startSample,
    readTo,
  );
  const counted = (async function* () {
    for await (const block of clock.samples(chunks)) {
      readCount += block.length;
      await report(readCount);
      yield block;
    }
  })();
  const whole = { startSample, endSample, totalSamples };
  // The clock pauses after every run of a model and every stretch of samples: a second pause would only leave more for
  // the garbage collector.
  const part = await analyseShard(counted, whole, clock.engine(engine), settingsOf(job.request.model), noPause);
  const bytes = encodePart(part);
  release(part.probabilities, part.speakers.embeddings, part.subsegments.embeddings);
  ports.log('info', 'shard_done', {
    jobId: job.id,
    shard,
    audioSeconds: (endSample - startSample) / SAMPLE_RATE_HZ,
    partBytes: bytes.length,
    wasmBytes: engine.memoryBytes(),
    ...clock.finish(),
  });
  return bytes;
}

const noPause = async (): Promise<void> => undefined;

const REPORT_EVERY_MS = 1000;

function progressReporter(ports: JobPorts, jobId: string, shard: number, totalSamples: number) {
  let reportedAt = ports.now();
  return async (readCount: number) => {
    const now = ports.now();
    if (now - reportedAt < REPORT_EVERY_MS) return;
    reportedAt = now;
    // A hint for progress bars: losing one must not cost the shard.
    await ports.progress.report(jobId, shard, readCount / totalSamples).catch((error) => {
      ports.log('warn', 'progress_not_reported', { jobId, shard, error: String(error) });
    });
  };
}
