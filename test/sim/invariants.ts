import type { JobKind } from '../../src/jobs/app-services.ts';
import { billOf } from '../../src/jobs/end-job.ts';
import { isTerminal } from '../../src/jobs/job-record.ts';
import { outputKey, WORK_PREFIX } from '../../src/jobs/work-keys.ts';
import type { JobRow } from '../../src/platform/d1/statements.ts';
import { outputOf } from './doubles.ts';
import type { Call } from './scenario.ts';
import type { World } from './world.ts';

export const CREDIT_SECONDS = 1_000_000;
const WEBHOOK_ATTEMPTS = 4;

type StoredJob = JobRow & { readonly deleted_at: number | null };

interface Usage {
  readonly job_id: string;
  readonly billed_seconds: number;
  readonly credit_seconds: number;
}

export interface InvariantReport {
  readonly violations: string[];
  /** States of the jobs, with the reasons of failures, which faults may cause. */
  readonly summary: string;
}

/** Checks all data after the jobs have ended, and again after the retention of outputs (`runNextDay`). */
export async function checkInvariants(
  world: World,
  calls: readonly Call[],
  runNextDay: () => Promise<void>,
): Promise<InvariantReport> {
  const { db, bucket } = world.storage;
  const rows = async <T>(table: string) => (await db.prepare(`SELECT * FROM ${table}`).all<T>()).results;
  const jobs = await rows<StoredJob>('jobs');
  const outbox = await rows<{ id: string }>('outbox');
  const usage = await rows<Usage>('usage_records');
  const [account] = await rows<{ credit_seconds: number }>('accounts');
  const work = await world.objects.list(WORK_PREFIX, 1000);
  const outputs = new Set(await world.objects.list('outputs/', 1000));
  const objects = [...world.progressObjects, ...world.copyObjects];
  const kept = objects.filter(([, object]) => object.hasStorage).map(([id]) => id);
  const tally = [
    ...outbox.map(({ id }) => `message ${id} is left`),
    ...work.map((key) => `${key} is left`),
    ...kept.map((id) => `the object of ${id} is left`),
    ...jobs.flatMap((job) => ofJob(world, job, calls, usage, outputs)),
    ...(await ofResults(world, calls, jobs, usage)),
    ...ofCallers(world, jobs, calls),
    ...ofCredit(account.credit_seconds, usage),
    ...ofOutputs(jobs, outputs),
  ];
  await runNextDay();
  const remaining = (await bucket.list()).objects.map(({ key }) => key);
  return {
    violations: [...tally, ...remaining.map((key) => `${key} is left after a day`)],
    summary: `${jobs.map(stateOf).join(', ')}; ${world.history.parts} parts`,
  };
}

function stateOf({ status, error_code: code, error_message: message, deleted_at: deletedAt }: StoredJob): string {
  const reason = code === 'internal' || code === 'source_gone' ? `${code}: ${message}` : code;
  return status + (reason ? ` (${reason})` : '') + (deletedAt === null ? '' : ', deleted');
}

function ofJob(
  { history, receivers }: World,
  { id, status, error_message: reason, deleted_at: deletedAt }: StoredJob,
  calls: readonly Call[],
  usage: readonly Usage[],
  outputs: ReadonlySet<string>,
): string[] {
  const violations: string[] = [];
  const endings = history.endings.filter(({ jobId }) => jobId === id).map(({ outcome }) => outcome);
  if (!isTerminal(status)) violations.push(`${id} is ${status}`);
  if (reason?.includes('several tries')) violations.push(`${id} was restarted until it failed`);
  if (endings.length > 1) violations.push(`${id} ended as ${endings}`);
  const bills = usage.filter(({ job_id: jobId }) => jobId === id).length;
  if (bills !== (status === 'succeeded' ? 1 : 0)) violations.push(`${id} is ${status} and has ${bills} bills`);

  const posts = receivers.posts.filter(({ jobId }) => jobId === id);
  const bodies = new Set(posts.map(({ body }) => body));
  if (bodies.size > 1) violations.push(`the receiver of ${id} received ${[...bodies].join(' and ')}`);
  if (deletedAt !== null) return violations;

  const webhook = calls.find((call) => call.id === id)?.webhook;
  const attempts = new Set(posts.map(({ attempt }) => attempt)).size;
  if (webhook && !posts.some(({ isAccepted }) => isAccepted) && attempts < WEBHOOK_ATTEMPTS)
    violations.push(`the webhook of ${id} was given up after ${attempts} attempts`);
  if (!webhook && posts.length > 0) violations.push(`${id} has sent a webhook without a request for one`);
  const sentStatus = posts[0] && (JSON.parse(posts[0].body) as { status: string }).status;
  if (sentStatus !== undefined && sentStatus !== status)
    violations.push(`${id} is ${status}, and its receiver received ${sentStatus}`);
  if (status === 'succeeded' && !outputs.has(outputKey(id))) violations.push(`${id} has no output`);
  return violations;
}

/** An output equals that of one file read without faults, and that file is billed. */
async function ofResults(
  { objects, recordings }: World,
  calls: readonly Call[],
  jobs: readonly StoredJob[],
  usage: readonly Usage[],
): Promise<string[]> {
  const violations: string[] = [];
  for (const { id, kind, status, deleted_at: deletedAt } of jobs) {
    if (status !== 'succeeded' || deletedAt !== null) continue;
    const { url, isInline } = calls.find((call) => call.id === id)!;
    const { seconds } = recordings.get(url)!;
    const output = await objects.get(outputKey(id));
    const { text } = JSON.parse(new TextDecoder().decode(output)) as { text: string };
    const versions = isInline ? seconds.slice(0, 1) : seconds;
    const version = versions.findIndex((length, v) => outputOf(length, v) === text);
    const billed = usage.find(({ job_id: jobId }) => jobId === id)?.billed_seconds;
    if (version < 0) violations.push(`the output of ${id} is ${text}, which is none of ${seconds.map(outputOf)}`);
    else if (billed !== billOf(kind as JobKind, seconds[version]).billedSeconds)
      violations.push(`${billed} s of ${id} were billed, it has ${seconds[version]} s`);
  }
  return violations;
}

/** Each job id in an answer exists; calls with one key have one job. */
function ofCallers({ history }: World, jobs: readonly StoredJob[], calls: readonly Call[]): string[] {
  const violations = history.answeredIds
    .filter((id) => !jobs.some((job) => job.id === id))
    .map((id) => `${id} does not exist`);
  for (const key of new Set(calls.map((call) => call.key))) {
    if (key === undefined) continue;
    const ids = new Set(calls.filter((call) => call.key === key).map(({ id }) => id));
    const created = jobs.filter((job) => ids.has(job.id) && job.deleted_at === null);
    if (created.length > 1) violations.push(`${key} created ${created.map(({ id }) => id)}`);
  }
  return violations;
}

function ofCredit(credit: number, usage: readonly Usage[]): string[] {
  const charged = CREDIT_SECONDS - credit;
  const owed = usage.reduce((sum, bill) => sum + bill.credit_seconds, 0);
  return Math.abs(charged - owed) > 1e-6 ? [`${charged} s were charged, ${owed} s were owed`] : [];
}

function ofOutputs(jobs: readonly StoredJob[], outputs: ReadonlySet<string>): string[] {
  const owned = new Set(jobs.filter((job) => job.deleted_at === null).map(({ id }) => outputKey(id)));
  return [...outputs].filter((key) => !owned.has(key)).map((key) => `${key} belongs to no job`);
}
