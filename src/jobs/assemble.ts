import type { Result } from '../audio/types.ts';
import { billOf } from './bill.ts';
import { dispatchShards } from './dispatch.ts';
import { failJob, notify, removeWork } from './fail.ts';
import { readRecording } from './ingest-state.ts';
import { outputKey, partKey } from './keys.ts';
import { createPulse, JobGone } from './lease.ts';
import { outboxId } from './messages.ts';
import type { Mutex } from './mutex.ts';
import type { IngestedLength, JobOutcome, JobPorts, JobRecord } from './ports.ts';
import { type Assembly, diarizeParts, type JobFault, type OutputText, resultOf } from './results/index.ts';
import { beginTranscription, isTranscribed } from './transcription.ts';

/** Last step of a job: clusters all parts, writes the output, ends the job. Running it twice writes the same bytes. */
export async function assembleJob(ports: JobPorts, mutex: Mutex, job: JobRecord): Promise<void> {
  const id = outboxId({ step: 'assemble', jobId: job.id });
  if (job.status !== 'running') {
    await ports.store.settle(id);
    return;
  }
  await mutex.run(createPulse(ports, job.id, id), ports.sleep, async (pulse) => {
    await pulse();
    const startedAt = ports.now();
    const { recording, tag } = await readRecording(ports, job.id);
    const { shardCount } = recording;
    const assembly = { ports, job, recording, tag, pulse };
    const result = await endingOf(assembly, startedAt).catch(async (error: unknown) => {
      const missing = await missingPart(ports, job.id, shardCount, tag);
      if (missing === undefined) throw error;
      // The parts go with the end of their job, which is noted before they go.
      if ((await ports.store.find(job.id))?.status !== 'running') throw new JobGone(job.id);
      return missing;
    });
    if (result === 'coming') {
      // The counter asks again once the last part is there.
      ports.log('warn', 'assembly_early', { jobId: job.id });
      await ports.store.settleEarly(job.id);
      return;
    }
    if (result === 'lost') {
      // A new ingest of the recording was interrupted before it had queued all shards.
      ports.log('warn', 'parts_lost', { jobId: job.id });
      await beginShards(ports, job.id, recording);
      return;
    }
    if (!result.ok) {
      await failJob(ports, job.id, result.error);
      return;
    }
    await result.value();
  });
}

/**
 * What is left to do when all parts have been put together: to end the job with its output, or to have it transcribed.
 */
async function endingOf(assembly: Assembly, startedAt: number): Promise<Result<() => Promise<void>, JobFault>> {
  const { ports, job, recording, tag, pulse } = assembly;
  const log = () =>
    ports.log('info', 'job_assembled', {
      jobId: job.id,
      shards: recording.shardCount,
      totalMs: ports.now() - startedAt,
    });
  if (isTranscribed(job)) {
    const diarized = await diarizeParts(assembly, { voices: false });
    if (!diarized.ok) return diarized;
    return {
      ok: true,
      value: async () => {
        await beginTranscription(ports, job, tag, diarized.value);
        log();
      },
    };
  }
  const output = await resultOf(assembly);
  if (!output.ok) return output;
  return {
    ok: true,
    value: async () => {
      await ports.objects.putStream(outputKey(job.id), withPulse(output.value, ports.now, pulse));
      await ports.pause();
      log();
      const { durationSeconds } = recording;
      await succeed(ports, job.id, { outputKey: outputKey(job.id), ...billOf(job.kind, durationSeconds) });
    },
  };
}

/** Ends a job whose output is written, tells its webhook and removes what it had in work. */
export async function succeed(ports: JobPorts, jobId: string, outcome: JobOutcome): Promise<void> {
  if (!(await ports.store.succeed(jobId, outcome, ports.now()))) {
    await dropOrphan(ports, jobId);
    return;
  }
  const { billedSeconds, transcribedSeconds } = outcome;
  ports.log('info', 'job_succeeded', { jobId, billedSeconds, transcribedSeconds });
  await notify(ports, jobId);
  await removeWork(ports, jobId);
}

/**
 * State of a missing part: 'coming' if its shard message exists, for example when a message of another version of the
 * service asks too early; 'lost' if that message has been settled. undefined if no part is missing.
 */
async function missingPart(
  ports: JobPorts,
  jobId: string,
  shardCount: number,
  tag: string,
): Promise<'coming' | 'lost' | undefined> {
  for (let shard = 0; shard < shardCount; shard++) {
    if (await ports.objects.exists(partKey(jobId, shard, tag))) continue;
    const row = await ports.store.outboxRow(outboxId({ step: 'shard', jobId, shard }));
    return row ? 'coming' : 'lost';
  }
  return undefined;
}

/** Begins all parts of a job: those that are there are found and counted. */
export async function beginShards(
  ports: JobPorts,
  jobId: string,
  { shardCount, durationSeconds }: IngestedLength,
): Promise<void> {
  await ports.store.settle(outboxId({ step: 'assemble', jobId }));
  if (await ports.store.finishIngest(jobId, { shardCount, durationSeconds, from: 0 }, ports.now()))
    await dispatchShards(ports, jobId, 0, shardCount);
}

const PULSE_EVERY_MS = 5000;

/**
 * The same chunks, with a sign of life every few seconds: a day's output with all its values takes a while to be
 * stored.
 */
export async function* withPulse(chunks: OutputText, now: () => number, pulse: () => Promise<void>) {
  let pulsedAt = now();
  for await (const chunk of chunks) {
    yield chunk;
    if (now() - pulsedAt < PULSE_EVERY_MS) continue;
    pulsedAt = now();
    await pulse();
  }
}

/** Deletes an output that was written while its job was canceled or deleted. */
async function dropOrphan(ports: JobPorts, jobId: string): Promise<void> {
  const job = await ports.store.find(jobId);
  if (job?.status !== 'succeeded') await ports.objects.deleteMany([outputKey(jobId)]);
}
