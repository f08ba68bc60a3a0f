import type { DispatchPorts } from './dispatch.ts';
import { BATCH_MESSAGES, dispatchAll } from './dispatch.ts';
import type { EndPorts } from './end-job.ts';
import { failJob, removeWork } from './end-job.ts';
import { MAX_JOB_MS } from './faults.ts';
import type { OutboxMessage } from './job-messages.ts';
import type { StepPorts } from './job-ports.ts';
import type { JobOutbox, JobRetention } from './job-store.ts';
import { type DeletedJob, IDEMPOTENCY_TTL_MS, type OutboxPosition } from './job-store.ts';
import { analysisKey, inlineUrlKey, jobOfKey, outputKey, voiceprintsKey, WORK_PREFIX } from './work-keys.ts';

type ExpirePorts = StepPorts<'objects' | 'now' | 'log' | 'outputTtlMs', JobRetention>;
type ResendPorts = DispatchPorts & StepPorts<'progress', Pick<JobOutbox, 'overdue'>>;

/**
 * Maximum number of objects that R2 deletes in one call. A sweep deletes up to 50,000 of a kind, which leaves no
 * backlog at a hundred jobs a second.
 */
const BATCH_OBJECTS = 1000;
const MAX_BATCHES = 50;
const NEW_JOB_MS = 5 * 60_000;
/** Longer than a step can run on the platform (15 minutes): none can write for a job that was deleted before that. */
const LAST_WRITE_MS = 20 * 60_000;
/** A request may name a recording that is about to expire; its job is stored a moment later. */
const MEDIA_SLACK_MS = 2 * 3600 * 1000;
/** Longer than any upload takes: the slowest source needs a day and a half for the largest recording. */
const UPLOAD_MS = 48 * 3600 * 1000;
const DELETED_BATCH = 1000;
const FOLDERS_BATCH = 1000;
/** How long the row of a job or a live stream is kept after its end. */
const ROW_TTL_MS = 30 * 24 * 3600 * 1000;
const ROWS_BATCH = 500;

/**
 * Deletes expired outputs and media, working data of ended jobs and aborted uploads. Safe to run at any time, also
 * twice at once.
 *
 * @throws the first fault, after all sweeps have run
 */
export async function expire(ports: ExpirePorts): Promise<void> {
  const now = ports.now();
  const faults: unknown[] = [];
  // A failure of one sweep must not stop the others.
  const runSweep = async (sweep: () => Promise<number>): Promise<number> => {
    try {
      return await sweep();
    } catch (error) {
      faults.push(error);
      return 0;
    }
  };
  const outputs = await runSweep(() => expireOutputs(ports, now));
  const deleted = await runSweep(() => sweepDeleted(ports, now));
  const media = await runSweep(() => expireMedia(ports, now));
  await runSweep(async () => {
    await ports.store.expireIdempotencyKeys(now - IDEMPOTENCY_TTL_MS);
    return 0;
  });
  const forgotten = await runSweep(() => forgetOld(ports, now));
  const folders = await runSweep(() => sweepWork(ports));
  const uploads = await runSweep(() => abortUploads(ports, now));
  if (outputs + deleted + media + forgotten + folders + uploads > 0) {
    ports.log('info', 'swept', { outputs, deleted, media, forgotten, folders, uploads });
  }
  if (faults.length > 0) throw faults[0];
}

async function expireOutputs(ports: ExpirePorts, now: number): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const jobs = await ports.store.expired(now - ports.outputTtlMs, BATCH_OBJECTS);
    if (jobs.length === 0) break;
    // Delete the object first: after a crash in between, the next sweep deletes it again, which is harmless.
    await ports.objects.deleteMany(jobs.flatMap((job) => [job.outputKey ?? outputKey(job.id), analysisKey(job.id)]));
    await ports.store.markCleaned(
      jobs.map((job) => job.id),
      now,
    );
    total += jobs.length;
  }
  return total;
}

/**
 * Deletes objects of deleted jobs that a crash or a last running step has left. Every sweep repeats this for a job
 * until no step can write for it.
 *
 * @returns number of jobs that need no further sweep
 */
async function sweepDeleted(ports: ExpirePorts, now: number): Promise<number> {
  let total = 0;
  let after: DeletedJob | undefined;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const jobs = await ports.store.deleted(DELETED_BATCH, after);
    if (jobs.length === 0) break;
    after = jobs.at(-1);
    await ports.objects.deleteMany(jobs.flatMap((job) => [outputKey(job.id), analysisKey(job.id)]));
    const done = jobs.filter((job) => job.deletedAt <= now - LAST_WRITE_MS).map((job) => job.id);
    if (done.length > 0) await ports.store.markCleaned(done, now);
    total += done.length;
    if (jobs.length < DELETED_BATCH) break;
  }
  return total;
}

async function expireMedia(ports: ExpirePorts, now: number): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const keys = await ports.store.expiredMedia(now - MEDIA_SLACK_MS, BATCH_OBJECTS);
    if (keys.length === 0) break;
    await ports.objects.deleteMany(keys);
    await ports.store.removeMedia(keys);
    total += keys.length;
  }
  return total;
}

/** Deletes rows of jobs and streams that ended 30 days ago, or the database would fill up. Their usage is kept. */
async function forgetOld(ports: ExpirePorts, now: number): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const rows = await ports.store.forget(now - ROW_TTL_MS, ROWS_BATCH);
    total += rows;
    if (rows < ROWS_BATCH) break;
  }
  return total;
}

async function sweepWork(ports: ExpirePorts): Promise<number> {
  let removed = 0;
  let after: string | undefined;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const ids = await ports.objects.folders(WORK_PREFIX, FOLDERS_BATCH, after);
    if (ids.length === 0) break;
    after = ids.at(-1);
    // Taken before the query: a job that is created after it counts as new, however long the other deletions take.
    const readAt = ports.now();
    const unfinished = await ports.store.unfinished(ids);
    for (const id of ids) {
      if (unfinished.has(id) || (await isNew(ports, id, readAt))) continue;
      await removeWork(ports, id);
      removed++;
    }
    if (ids.length < FOLDERS_BATCH) break;
  }
  return removed;
}

/** Aborts uploads that no step continues: those that are too old, or whose job ended before the last possible write. */
function abortUploads(ports: ExpirePorts, now: number): Promise<number> {
  return ports.objects.abortUploads(async (key, begunAt) => {
    if (begunAt < now - UPLOAD_MS) return true;
    const jobId = jobOfKey(key);
    if (begunAt >= now - LAST_WRITE_MS || jobId === undefined) return false;
    return !(await ports.store.unfinished([jobId])).has(jobId);
  });
}

/**
 * Whether the job of these objects may not have its row yet: the inline audio and voiceprints of a request are stored
 * before the row, longer before it if the database is slow.
 */
async function isNew(ports: ExpirePorts, jobId: string, asOf: number): Promise<boolean> {
  const uploads = await Promise.all(
    [inlineUrlKey(jobId), voiceprintsKey(jobId)].map((key) => ports.objects.uploadedAt(key)),
  );
  return uploads.some((uploadedAt) => uploadedAt !== undefined && asOf - uploadedAt < NEW_JOB_MS);
}

const RESEND_BATCHES = 20;

/**
 * Sends messages again whose lease has run out: local queues lose theirs when the process ends, and a consumer may die
 * during a step. Handlers may run twice, so that an early resend costs only time.
 *
 * @param before messages whose lease ends before this moment count as lost, milliseconds since the Unix epoch. Infinity
 *   after a restart: all messages are sent again, those of shards included
 * @returns number of messages sent
 */
export async function resendLost(ports: ResendPorts, before: number): Promise<number> {
  let sent = 0;
  const seen = new Set<string>();
  const isRestart = before === Number.POSITIVE_INFINITY;
  let after: OutboxPosition | undefined;
  for (let batch = 0; batch < RESEND_BATCHES || isRestart; batch++) {
    const { rows, next } = await ports.store.overdue(before, BATCH_MESSAGES, { after });
    // A message that was just sent has a new, later lease: with `before` = Infinity a later page lists it again.
    const lost = rows.filter(({ id }) => !seen.has(id));
    for (const { id } of lost) seen.add(id);
    await dispatchAll(
      ports,
      lost.map(({ message, dueAt }) => ({
        message,
        delaySeconds: Math.ceil(Math.max(0, dueAt - ports.now()) / 1000),
      })),
    );
    if (isRestart) for (const { message } of lost) await resendShards(ports, message);
    sent += lost.length;
    if (!next) break;
    after = next;
  }
  if (sent > 0) ports.log('warn', 'messages_resent', { sent });
  return sent;
}

async function resendShards(ports: ResendPorts, { step, jobId }: OutboxMessage): Promise<void> {
  if (step !== 'ingest' && step !== 'analyse') return;
  await ports.progress.resend(jobId).catch((error: unknown) => {
    ports.log('warn', 'shards_not_resent', { jobId, error: String(error) });
  });
}

const FAILED_PER_SWEEP = 100;

/** Fails jobs that have been running for a day. */
export async function failOverdue(
  ports: EndPorts & { readonly store: Pick<JobRetention, 'runningSince'> },
): Promise<void> {
  for (const jobId of await ports.store.runningSince(ports.now() - MAX_JOB_MS, FAILED_PER_SWEEP))
    await failJob(ports, jobId, {
      code: 'internal',
      message: 'The service could not finish this job within 24 hours.',
    });
}
