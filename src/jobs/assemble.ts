import type { Result } from '../audio/audio-ports.ts';
import { keepAnalysis } from './analysis.ts';
import { billOf } from './bill.ts';
import { afterEnd, failJob } from './fail.ts';
import { readRecording } from './ingest-state.ts';
import { analysisKey, outputKey, partKey } from './keys.ts';
import { JobGone } from './lease.ts';
import type { JobOutcome, JobPorts, JobRecord } from './ports.ts';
import { type Assembly, diarizeParts, type JobFault, type OutputText, resultOf } from './results/index.ts';
import { beginTranscription, isTranscribed } from './transcription.ts';

/** Last step of a job: clusters all parts, writes the output, ends the job. Running it twice writes the same bytes. */
export async function assembleJob(ports: JobPorts, job: JobRecord, pulse: () => Promise<void>): Promise<void> {
  await pulse();
  const startedAt = ports.now();
  const { recording, tag } = await readRecording(ports, job.id);
  const readPart: Assembly['readPart'] = (shard, offset, length) =>
    ports.objects.getRange(partKey(job.id, shard, tag), offset, length);
  const assembly = { ports, job, recording, readPart, pulse };
  const result = await endingOf(assembly, tag, startedAt).catch(async (error: unknown) => {
    if (!(await isPartMissing(ports, job.id, recording.shardCount, tag))) throw error;
    // The parts go with the end of their job, which is noted before they go.
    if ((await ports.store.find(job.id))?.status !== 'running') throw new JobGone(job.id);
    return 'lost' as const;
  });
  if (result === 'lost') {
    ports.log('warn', 'parts_lost', { jobId: job.id });
    await ports.progress.restart(job.id, tag);
    if (await ports.store.nextStep(job.id, ['assemble'], 'analyse', ports.now()))
      await ports.progress.expect(job.id, tag, recording.shardCount);
    return;
  }
  if (!result.ok) {
    await failJob(ports, job.id, result.error);
    return;
  }
  await result.value();
}

/**
 * What is left to do when all parts have been put together: to end the job with its output, or to have it transcribed.
 */
async function endingOf(
  assembly: Assembly,
  tag: string,
  startedAt: number,
): Promise<Result<() => Promise<void>, JobFault>> {
  const { ports, job, recording, pulse } = assembly;
  const log = () =>
    ports.log('info', 'job_assembled', {
      jobId: job.id,
      shards: recording.shardCount,
      totalMs: ports.now() - startedAt,
    });
  const { id, kind } = job;
  if (isTranscribed(job)) {
    const diarized = await diarizeParts(assembly, { voices: job.request.embeddings === true });
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
      if (kind === 'diarize') await keepAnalysis(ports, id, pulse);
      await ports.pause();
      log();
      const { durationSeconds } = recording;
      await succeed(ports, job, { outputKey: outputKey(job.id), ...billOf(job.kind, durationSeconds) });
    },
  };
}

/** Ends a job whose output is written, tells its webhook and removes what it had in work. */
export async function succeed(ports: JobPorts, job: JobRecord, outcome: JobOutcome): Promise<void> {
  if (!(await ports.store.succeed(job.id, outcome, ports.now()))) {
    await dropOrphan(ports, job.id);
    return;
  }
  const { billedSeconds, transcribedSeconds } = outcome;
  ports.log('info', 'job_succeeded', { jobId: job.id, billedSeconds, transcribedSeconds });
  await afterEnd(ports, job);
}

async function isPartMissing(ports: JobPorts, jobId: string, shardCount: number, tag: string): Promise<boolean> {
  for (let shard = 0; shard < shardCount; shard++)
    if (!(await ports.objects.exists(partKey(jobId, shard, tag)))) return true;
  return false;
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
  if (job?.status !== 'succeeded') await ports.objects.deleteMany([outputKey(jobId), analysisKey(jobId)]);
}
