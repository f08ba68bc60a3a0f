import { afterAll, beforeAll, expect, it } from 'vitest';
import { readBindings } from '../../client/local/bundle.ts';
import type { Miniflare } from '../../client/local/miniflare.ts';
import { projectDir } from '../../client/local/paths.ts';
import { JOBS } from '../../client/workers.ts';
import { startTestWorker } from '../helpers/workerd.ts';

/**
 * Real queues with the consumers of wrangler.jobs.toml: checks the properties that the steps of jobs and the simulation
 * in `test/sim` rely on.
 */
let workerd: Miniflare;
beforeAll(async () => {
  const { queueProducers, queueConsumers } = await readBindings(projectDir, JOBS);
  workerd = await startTestWorker('queues', { queueProducers, queueConsumers } as object);
});
afterAll(() => workerd?.dispose());

/** Sends a message to every queue, if given. @returns all deliveries so far */
async function deliveries(body?: string): Promise<[queue: string, body: string, attempt: number][]> {
  const response = await workerd.dispatchFetch('http://workerd/', body === undefined ? {} : { method: 'POST', body });
  return (await response.json()) as [string, string, number][];
}

/** The first delivery and `max_retries`. */
const MAX_DELIVERIES = 101;
const QUEUES = ['rollcall-ingest', 'rollcall-jobs', 'rollcall-priority', 'rollcall-transcripts', 'rollcall-webhooks'];
const attemptsOf = async (queue: string, body: string) =>
  (await deliveries()).filter(([name, text]) => name === queue && text === body).map(([, , attempt]) => attempt);

it('a failing message is delivered 101 times with its attempt, then once to the dead letter queue', async () => {
  await deliveries('again');
  await expect.poll(() => attemptsOf('rollcall-dead', 'again'), { timeout: 20_000 }).toHaveLength(QUEUES.length);
  const expected = Array.from({ length: MAX_DELIVERIES }, (_, i) => i + 1);
  for (const queue of QUEUES) expect(await attemptsOf(queue, 'again'), queue).toEqual(expected);
});

it('an acknowledged message is delivered once', async () => {
  await deliveries('done');
  for (const queue of QUEUES) await expect.poll(() => attemptsOf(queue, 'done'), { timeout: 20_000 }).toEqual([1]);
  expect(await attemptsOf('rollcall-dead', 'done')).toEqual([]);
});
