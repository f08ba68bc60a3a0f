import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WEBHOOK_SECRET_GRACE_MS } from '../../src/jobs/webhook-signature.ts';
import { runCli } from '../helpers/local-process.ts';
import { type ContractService, startContractService } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

/** `npm run account` beside the running service. */
const account = (...args: string[]) => runCli('account', args, { ROLLCALL_STATE: service.stateDir });
const SOURCE = 'http://127.0.0.1:9/recording.wav';

async function runSuccessfully(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await account(...args);
  expect([code, stderr]).toEqual([0, expect.anything()]);
  return stdout;
}

describe('npm run account', { timeout: 120_000 }, () => {
  it('creates an account once and lists it', async () => {
    const id = (await runSuccessfully('create', "Ann's shop")).trim();
    expect(await service.run('SELECT id FROM accounts WHERE name = ?', "Ann's shop")).toEqual([{ id }]);
    const again = await account('create', "Ann's shop");
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(await runSuccessfully('list')).toMatch(/^Ann's shop {2}0 s {2}- {2}post 100 {2}get 300 {2}\d{4}-/m);
    expect(await runSuccessfully('show', "Ann's shop")).toContain(
      'post limit: 100 requests a minute to each endpoint (default)',
    );
  });

  it('sets limits, credit and the subscription of a running service', async () => {
    const { token: key } = await service.newKey({ account: 'set', creditSeconds: 0, defaultLimits: true });
    const post = () => service.call('POST', '/v1/diarize', { key, body: { url: SOURCE } });
    const limit = (answer: { headers: Headers }) => answer.headers.get('X-RateLimit-Limit');
    const before = await post();
    expect([before.status, limit(before)]).toEqual([402, '100']);

    await runSuccessfully('set', 'set', '--credit', '15', '--post-limit', '500', '--get-limit', '7');
    await runSuccessfully('set', 'set', '--add-credit', '5.5');
    const after = await post();
    expect([after.status, limit(after)]).toEqual([200, '500']);
    expect(limit(await service.call('GET', '/v1/test', { key }))).toBe('7');
    const shown = await runSuccessfully('show', 'set');
    expect(shown).toContain('credit: 20.5 s');
    expect(shown).toContain('post limit: 500 requests');

    await runSuccessfully('set', 'set', '--credit', '0', '--subscribe', '--default-limits');
    const subscribed = await post();
    expect([subscribed.status, limit(subscribed)]).toEqual([200, '100']);
    await runSuccessfully('set', 'set', '--unsubscribe');
    expect((await post()).status).toBe(402);
  });

  it('shows the usage that the service reports', async () => {
    const { accountId } = await service.newKey({ account: 'used' });
    for (const [kind, billedSeconds] of [
      ['diarize', 61.5],
      ['voiceprint', 0],
    ] as const) {
      await service.run(
        'INSERT INTO usage_records (job_id, account_id, kind, billed_seconds, created_at) VALUES (?, ?, ?, ?, ?)',
        randomUUID(),
        accountId,
        kind,
        billedSeconds,
        Date.parse('2025-05-01T10:00:00Z'),
      );
    }
    const lines = (await runSuccessfully('usage', 'used', '--from', '2025-05-01', '--to', '2025-05-01'))
      .trimEnd()
      .split('\n');
    expect(lines.map((line) => line.trim().split(/ +/).join(' '))).toEqual([
      '2025-05-01 diarize 61.5 s 1 jobs 0 voiceprints',
      '2025-05-01 voiceprint 0 s 1 jobs 1 voiceprints',
      'total 61.5 s 2 jobs 1 voiceprints',
    ]);
    expect((await account('usage', 'used', '--from', 'monday')).code).toBe(2);
  });

  it('exports the usage of all accounts', async () => {
    for (const name of ['Ann, "A"', 'export-b']) {
      const { accountId } = await service.newKey({ account: name });
      await service.run(
        `INSERT INTO usage_records (job_id, account_id, kind, billed_seconds, created_at)
         VALUES (?, ?, 'live', 90.25, ?)`,
        randomUUID(),
        accountId,
        Date.parse('2025-06-01T10:00:00Z'),
      );
    }
    const range = ['--from', '2025-06-01', '--to', '2025-06-01'];
    expect(await runSuccessfully('usage', ...range, '--format', 'csv')).toBe(
      'account,date,kind,jobs,billedSeconds,voiceprints\n' +
        '"Ann, ""A""",2025-06-01,live,1,90.25,0\nexport-b,2025-06-01,live,1,90.25,0\n',
    );
    const json = (await runSuccessfully('usage', 'export-b', ...range, '--format', 'json')).trimEnd().split('\n');
    expect(json.map((line) => JSON.parse(line))).toEqual([
      { account: 'export-b', date: '2025-06-01', kind: 'live', billedSeconds: 90.25, jobs: 1, voiceprints: 0 },
    ]);
    expect((await runSuccessfully('usage', ...range)).split('\n')[1]).toMatch(
      /^Ann, "A" +2025-06-01 +live +1 +90\.25 +0$/,
    );
  });

  it('rotates the webhook secret at most once a day unless forced', async () => {
    await service.newKey({ account: 'rotated' });
    const first = await runSuccessfully('webhook-secret', 'rotated');
    const second = await runSuccessfully('rotate-webhook-secret', 'rotated');
    expect(second).toMatch(/^whsec_[0-9a-f]{64}\n$/);
    expect(second).not.toBe(first);
    expect(await runSuccessfully('webhook-secret', 'rotated')).toBe(second);
    expect(await runSuccessfully('show', 'rotated')).toContain('webhook secret: version 2; version 1 also signs until');

    const early = await account('rotate-webhook-secret', 'rotated');
    expect([early.code, early.stdout]).toEqual([1, '']);
    expect(await runSuccessfully('webhook-secret', 'rotated')).toBe(second);
    expect(await runSuccessfully('rotate-webhook-secret', 'rotated', '--force')).not.toBe(second);

    const dayAgo = Date.now() - WEBHOOK_SECRET_GRACE_MS;
    await service.run('UPDATE accounts SET webhook_secret_rotated_at = ? WHERE name = ?', dayAgo, 'rotated');
    await runSuccessfully('rotate-webhook-secret', 'rotated');
    expect(await runSuccessfully('show', 'rotated')).toContain('webhook secret: version 4');
  });

  it.each([
    [2, []],
    [2, ['set', 'main']],
    [2, ['set', 'main', '--credit', '-1']],
    [2, ['set', 'main', '--credit', '5', '--add-credit', '5']],
    [2, ['set', 'main', '--subscribe', '--unsubscribe']],
    [2, ['set', 'main', '--post-limit', '0']],
    [2, ['set', 'main', '--post-limit', '5', '--default-limits']],
    [2, ['show']],
    [2, ['create', ' ']],
    [1, ['show', 'nobody']],
    [1, ['set', 'nobody', '--subscribe']],
    [1, ['usage', 'nobody']],
    [1, ['rotate-webhook-secret', 'nobody']],
    [1, ['webhook-secret', 'nobody']],
  ] as const)('exits with %i for %j', async (code, args) => {
    const ended = await account(...args);
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(ended.stderr).not.toBe('');
    expect(ended.stderr).not.toMatch(/ at .*\.ts:\d+/);
  });

  it('works on a state folder without a service', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'rollcall-accounts-'));
    try {
      const env = { ROLLCALL_STATE: stateDir };
      expect((await runCli('account', ['create', 'early'], env)).code).toBe(0);
      expect((await runCli('account', ['rotate-webhook-secret', 'early'], env)).stdout).toMatch(/^whsec_/);
    } finally {
      rmSync(stateDir, { recursive: true, force: true });
    }
  });
});
