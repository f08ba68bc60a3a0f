import { Command, Option } from 'commander';
import { FORMATS, type Format, formatOutput } from '../format/output.ts';
import type { DiarizeOutput, JobState, JobStatus } from '../sdk/types.ts';
import { wholeNumberIn } from './arguments.ts';
import { must, type Session, withService } from './job.ts';
import { print, printLines } from './print.ts';
import { CliError, EXIT, note } from './run.ts';

const STATUSES: readonly JobStatus[] = ['created', 'pending', 'running', 'succeeded', 'failed', 'canceled'];
const JOBS_PER_REQUEST = 100;

async function list({ status, limit, json }: { status?: JobStatus; limit: number; json?: boolean }): Promise<void> {
  const items = await withService((session) => read(session, status, limit));
  if (json) return print(`${JSON.stringify(items)}\n`);
  await printLines(items.map(({ id, status, createdAt }) => `${id}  ${status.padEnd(9)}  ${createdAt}`));
}

async function read({ client }: Session, status: JobStatus | undefined, limit: number) {
  const items: { id: string; status: JobStatus; createdAt: string }[] = [];
  for (let cursor: string | undefined; items.length < limit; ) {
    const page = must(await client.list({ status, cursor, limit: Math.min(JOBS_PER_REQUEST, limit - items.length) }));
    items.push(...page.items);
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  return items;
}

async function get(id: string, { format, json }: { format?: Format; json?: boolean }): Promise<void> {
  const job = await withService(async ({ client }) => must(await client.retrieve(id)));
  if (json) return print(`${JSON.stringify(job, null, 2)}\n`);
  if (format === undefined) return print(describe(job));
  if (job.status !== 'succeeded') throw new CliError(EXIT.failed, `The job is ${job.status}: it has no output.`);
  if (!job.output || !('diarization' in job.output)) {
    throw new CliError(EXIT.failed, 'The job has no turns, or its output has expired.');
  }
  await print(formatOutput(job.output as DiarizeOutput, format, id));
}

function describe({ jobId, status, progress, createdAt, updatedAt, output }: JobState): string {
  const share = progress === undefined ? '' : `  ${Math.round(progress * 100)} %`;
  const error = output && 'error' in output ? `error    ${output.error}\n` : '';
  return `job      ${jobId}\nstatus   ${status}${share}\ncreated  ${createdAt}\nupdated  ${updatedAt}\n${error}`;
}

async function cancel(id: string): Promise<void> {
  const { status } = await withService(async ({ client }) => must(await client.cancel(id)));
  note(status === 'canceled' ? `The job ${id} is canceled.` : `The job ${id} has already ended: ${status}.`);
}

async function remove(ids: readonly string[]): Promise<void> {
  await withService(async ({ client }) => {
    for (const id of ids) must(await client.remove(id));
  });
  note(ids.length === 1 ? `The job ${ids[0]} is deleted.` : `${ids.length} jobs are deleted.`);
}

export const command = new Command('jobs').description("The account's jobs of the last 30 days.");
command
  .command('list')
  .description('show jobs, the newest first: id, status, time of creation')
  .addOption(new Option('--status <status>', 'only jobs of this status').choices(STATUSES))
  .option('--limit <n>', 'number of jobs', wholeNumberIn(1, 100_000), 20)
  .option('--json', 'print JSON')
  .action(list);
command
  .command('get')
  .argument('<id>')
  .description('show a job, or with --format its result')
  .addOption(new Option('--format <format>', 'print the turns').choices(FORMATS))
  .option('--json', 'print the whole answer as JSON')
  .action(get);
command.command('cancel').argument('<id>').description('stop a job; it is not billed').action(cancel);
command.command('delete').argument('<ids...>').description('delete jobs with all their data').action(remove);
