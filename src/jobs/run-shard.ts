import { readSamples, release } from '../audio/index.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { partKey, spoolKey } from './keys.ts';
import { createPulse, JobGone, keepingLease, keepLease } from './lease.ts';
import { outboxId } from './messages.ts';
import type { Mutex } from './mutex.ts';
import { readPlan } from './plan.ts';
import type { Engine, JobPlan, JobPorts, JobRecord, SourceRef } from './ports.ts';
import { isOfParts, isPassing, SourceReadError } from './source-error.ts';
import { StageClock } from './stage-clock.ts';

const SAMPLE_RATE_HZ = 16000;
/** A window or stretch that starts in a shard may end this much after it. */
const OVERRUN_SAMPLES = 10 * SAMPLE_RATE_HZ;

/**
 * Fetches, decodes and analyses one shard and stores its part. Idempotent by (job, shard): the part is the same whoever makes it.
 *
 * @throws JobGone when the job ended meanwhile; SourceReadError when the source cannot be read any more
 */
export async function runShard(ports: JobPorts, mutex: Mutex, job: JobRecord, shard: number): Promise<void> {
  const id = outboxId({ step: 'shard', jobId: job.id, shard });
  if (job.status !== 'running') {
    await ports.store.settle(id);
    return;
  }
  const key = partKey(job.id, shard, ports.work);
  if (!(await ports.objects.exists(key))) {
    const { source } = await readPlan(ports, job.id);
    const makePart = (from: SourceRef) =>
      mutex.run(createPulse(ports, job.id, id), ports.sleep, async (pulse) => {
        // Another copy of the message may have made it while this one waited for its turn.
        if (await ports.objects.exists(key)) return;
        const part = await analyse(ports, job, await readPlan(ports, job.id), from, shard, pulse);
        await ports.objects.put(key, part);
        release(part);
      });
    await makePart(source).catch(async (error: unknown) => {
      const copy = await copyOfParts(ports, job.id, id, source, error);
      ports.log('warn', 'source_copied', { jobId: job.id, shard, error: String(error) });
      await makePart(copy);
    });
  }
  // Counted before it is settled: dying in between repeats the count, which the counter tolerates.
  if (await ports.progress.partDone(job.id, shard)) {
    await ports.store.settle(id);
    return;
  }
  // The counter is of another version of the service. The lease runs out, the step is sent again, and finds its part.
  ports.log('warn', 'part_not_counted', { jobId: job.id, shard });
}

/**
 * A copy of the recording where it was read by parts that turned out not to be of one file, though they were while it was planned.
 *
 * @throws the fault itself where a copy would be no better, that of the copy where another try may make it
 */
async function copyOfParts(
  ports: JobPorts,
  jobId: string,
  outboxRowId: string,
  source: SourceRef,
  fault: unknown,
): Promise<SourceRef> {
  const isUnfit = source.kind === 'http' && fault instanceof SourceReadError && isOfParts(fault.error.kind);
  if (!isUnfit) throw fault;
  const copied = await keepLease(ports, jobId, outboxRowId, (signal) =>
    ports.sources.copy(source, spoolKey(jobId), signal),
  );
  if (copied.ok) return copied.value;
  throw isPassing(copied.error.kind) ? new SourceReadError(copied.error) : fault;
}

async function analyse(
  ports: JobPorts,
  job: JobRecord,
  plan: JobPlan,
  from: SourceRef,
  shard: number,
  pulse: () => Promise<void>,
): Promise<Uint8Array> {
  const range = plan.shards[shard];
  if (!range) throw new JobGone(job.id);
  const engine: Engine = await ports.engine();
  if (engine.segmentation.info.windowSamples > OVERRUN_SAMPLES)
    throw new Error('windows are longer than a shard reads on');
  const clock = new StageClock(ports.now, pulse);
  const endSample = Math.min(range.endSample + OVERRUN_SAMPLES, plan.totalSamples);
  let readCount = 0;
  const report = progressReporter(ports, job.id, shard, endSample - range.startSample);
  const id = outboxId({ step: 'shard', jobId: job.id, shard });
  const source = keepingLease(ports, job.id, id, ports.sources.open(from));
  const samples = clock.samples(
    readSamples(source, plan.index, ports.codecs(), { startSample: range.startSample, endSample }),
  );
  const counted = (async function* () {
    for await (const block of samples) {
      readCount += block.length;
      await report(readCount);
      yield block;
    }
  })();
  const whole = { ...range, totalSamples: plan.totalSamples };
  const settings = settingsOf(job.request.model);
  // The clock pauses after every run of a model and every stretch of samples: a second pause would only leave more for the garbage collector.
  const part = await analyseShard(counted, whole, clock.engine(engine), settings, noPause).finally(() =>
    source.close?.(),
  );
  const bytes = encodePart(part);
  release(part.probabilities, part.speakers.embeddings, part.subsegments.embeddings);
  ports.log('info', 'shard_done', {
    jobId: job.id,
    shard,
    audioSeconds: (range.endSample - range.startSample) / SAMPLE_RATE_HZ,
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
