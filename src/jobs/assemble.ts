import { assemble, openPart, settingsOf, writeOutput } from '../diarization/index.ts';
import { failJob, notify, removeWork } from './fail.ts';
import { outputKey, partKey } from './keys.ts';
import { createPulse } from './lease.ts';
import { outboxId } from './messages.ts';
import type { Mutex } from './mutex.ts';
import { readPlan } from './plan.ts';
import type { JobPlan, JobPorts, JobRecord } from './ports.ts';

/** Every successful job is billed at least this much (contract §7). */
export const MIN_BILLED_SECONDS = 20;

/** Last step of a job: clusters all parts, writes the output, ends the job. Running it twice writes the same bytes. */
export async function assembleJob(ports: JobPorts, mutex: Mutex, job: JobRecord): Promise<void> {
  const id = outboxId({ step: 'assemble', jobId: job.id });
  if (job.status !== 'running') {
    await ports.store.settle(id);
    return;
  }
  const pulse = createPulse(ports, job.id, id);
  await mutex.run(pulse, ports.sleep, async () => {
    await pulse();
    const startedAt = ports.now();
    const plan = await readPlan(ports, job.id);
    const error = await writeResult(ports, job, plan, pulse);
    if (error) {
      await failJob(ports, job.id, error);
      return;
    }
    await ports.pause();
    ports.log('info', 'job_assembled', { jobId: job.id, shards: plan.shards.length, totalMs: ports.now() - startedAt });
    const billedSeconds = Math.max(MIN_BILLED_SECONDS, plan.index.durationSeconds);
    const won = await ports.store.succeed(job.id, { outputKey: outputKey(job.id), billedSeconds }, ports.now());
    if (!won) {
      await dropOrphan(ports, job.id);
      return;
    }
    ports.log('info', 'job_succeeded', { jobId: job.id, billedSeconds });
    await notify(ports, job.id);
    await removeWork(ports, job.id);
  });
}

/** An output that was written while its job was canceled or deleted belongs to nobody. */
async function dropOrphan(ports: JobPorts, jobId: string): Promise<void> {
  const job = await ports.store.find(jobId);
  if (job?.status !== 'succeeded') await ports.objects.deleteMany([outputKey(jobId)]);
}

async function writeResult(
  ports: JobPorts,
  job: JobRecord,
  plan: JobPlan,
  pulse: () => Promise<void>,
): Promise<{ code: string; message: string } | undefined> {
  const parts = await Promise.all(plan.shards.map((_, shard) => openStoredPart(ports, job.id, shard)));
  const { request } = job;
  const result = await assemble(
    {
      count: parts.length,
      readEmbeddings: (shard) => parts[shard]!.readEmbeddings(),
      readFrames: (shard) => parts[shard]!.readFrames(),
    },
    { totalSamples: plan.totalSamples },
    settingsOf(request.model),
    { numSpeakers: request.numSpeakers, minSpeakers: request.minSpeakers, maxSpeakers: request.maxSpeakers },
    { pause: pulse, speakerTracks: request.speakerProbability, pldaOf: ports.plda },
  );
  if (!result.ok) return { code: result.error.kind, message: result.error.message };
  const warnings = [plan.index.warning, result.value.warning].filter((text) => text !== undefined);
  const output = writeOutput(
    { ...result.value, warning: warnings.length > 0 ? warnings.join(' ') : undefined },
    {
      exclusive: request.exclusive,
      confidence: request.confidence,
      turnLevelConfidence: request.turnLevelConfidence,
      speechProbability: request.speechProbability,
      crosstalkProbability: request.crosstalkProbability,
      speakerProbability: request.speakerProbability,
    },
  );
  await ports.objects.putStream(outputKey(job.id), output);
  return undefined;
}

function openStoredPart(ports: JobPorts, jobId: string, shard: number) {
  const key = partKey(jobId, shard);
  return openPart((offset, length) => ports.objects.getRange(key, offset, length));
}
