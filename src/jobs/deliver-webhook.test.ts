import { describe, expect, it } from 'vitest';
import { deliverWebhook } from './deliver-webhook.ts';
import type { RetryReason, WebhookMessage } from './messages.ts';
import type { JobPorts } from './ports.ts';

const NOW = 1_800_000_000_500;
const DAY = 24 * 3600 * 1000;
const JOB = {
  id: 'job',
  accountId: 'a',
  status: 'succeeded',
  webhookUrl: 'https://example.org/hook',
  webhookStatusOnly: false,
  createdAt: NOW,
  updatedAt: NOW,
  completedAt: NOW,
  outputKey: 'outputs/job.json',
  request: {},
};

/** One delivery to a receiver that answers with a status. */
async function delivered(attempt: number, status: number, job: object = {}, stored = attempt) {
  const posts: { body: string; headers: Record<string, string> }[] = [];
  const done: (string | object)[] = [];
  const leases: number[] = [];
  const message: WebhookMessage = {
    step: 'webhook',
    jobId: 'job',
    attempt,
    reason: 'http_error' satisfies RetryReason,
  };
  const ports = {
    store: {
      outboxRow: async () => ({ message: { ...message, attempt: stored } }),
      recordStart: async (_id: string, until: number) => void leases.push(until),
      find: async () => ({ ...JOB, ...job }),
      webhookSecretVersions: async () => [1],
      settle: async (id: string) => void done.push(id),
      reschedule: async (_id: string, _handled: object, next: WebhookMessage, dueAt: number) =>
        done.push({ attempt: next.attempt, inSeconds: (dueAt - NOW) / 1000 }),
      renewLease: async () => {},
    },
    webhookSecret: async () => 'secret',
    webhook: {
      post: async (_url: string, body: Uint8Array, headers: Record<string, string>) => {
        posts.push({ body: new TextDecoder().decode(body), headers });
        return { ok: true, value: { status } };
      },
    },
    objects: { sizeBytes: async () => 2, get: async () => new TextEncoder().encode('{}') },
    queue: { send: async () => {} },
    log: () => {},
    now: () => NOW,
    outputTtlMs: DAY,
  } as unknown as JobPorts;
  await deliverWebhook(ports, message);
  return { posts, done, leases };
}

describe('deliverWebhook', () => {
  it('tries again at once, after one minute and after five, and then no more', async () => {
    const next = await Promise.all([0, 1, 2, 3].map(async (attempt) => (await delivered(attempt, 500)).done));
    expect(next).toEqual([
      [{ attempt: 1, inSeconds: 0 }],
      [{ attempt: 2, inSeconds: 60 }],
      [{ attempt: 3, inSeconds: 300 }],
      ['job/webhook'],
    ]);
    // Until then it may wait for its turn and for a slow receiver, and is not sent a second time.
    expect((await delivered(0, 500)).leases).toEqual([NOW + 15 * 60_000]);
  });

  it('takes a status of 200 to 299 for an answer, and no other', async () => {
    for (const status of [200, 204, 299]) expect((await delivered(0, status)).done).toEqual(['job/webhook']);
    for (const status of [199, 300, 304, 404])
      expect((await delivered(0, status)).done).toMatchObject([{ attempt: 1 }]);
  });

  it('sends nothing for a leftover copy, whose place a later attempt has taken, and of a job that has not ended', async () => {
    expect(await delivered(0, 200, {}, 1)).toMatchObject({ posts: [], done: [] });
    expect(await delivered(0, 200, { status: 'running' })).toMatchObject({ posts: [], done: ['job/webhook'] });
  });

  it.each([
    ['succeeded', undefined],
    ['failed', { code: 'no_speech', message: 'No speech.' }],
  ])('sends the output of a job that has %s until its day is over, and none afterwards', async (status, error) => {
    const bodyOf = async (completedAt: number) =>
      JSON.parse((await delivered(0, 200, { status, error, completedAt })).posts[0]!.body) as object;
    expect(await bodyOf(NOW - DAY + 1)).toHaveProperty('output');
    expect(await bodyOf(NOW - DAY)).not.toHaveProperty('output');
  });
});
