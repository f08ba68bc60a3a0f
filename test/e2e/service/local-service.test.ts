import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { quietWranglerEnv, wranglerScript } from '../../../client/local/bundle.ts';
import { runningOwner } from '../../../client/local/owner.ts';
import { findProcess, listProcesses } from '../../../client/local/processes.ts';
import { startLocalService } from '../../../client/local/service.ts';
import { modelKey, readManifest } from '../../../client/models/store.ts';
import { RollcallClient } from '../../../client/sdk/client.ts';
import { filesToLoad, packInUse } from '../../../src/platform/onnx/manifest.ts';
import { conversation, type RunningService, root, runCli, startService } from '../../helpers/local-process.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });

/** Warnings of a restart; the second kind if the runtime died before it was ready. */
const RESTART = /^warning: the local runtime .*(is restarted|did not start)/gm;

let stateDir: string;
let running: RunningService[];

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-state-'));
  running = [];
});

afterEach(async () => {
  for (const service of running) {
    if (findProcess(service.pid) || service.workerdPids().length > 0) await service.killAll().catch(() => {});
  }
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
});

async function start(port?: number, ownGroup = false): Promise<RunningService> {
  const service = await startService(stateDir, port, ownGroup);
  running.push(service);
  return service;
}

const keyWorks = async ({ url, key }: { url: string; key: string }): Promise<boolean> =>
  (await new RollcallClient({ url, key }).test()).ok;

describe('the local service', () => {
  it('starts in an empty folder with migrations, models and private secrets', async () => {
    const service = await startLocalService({ stateDir });
    try {
      const { count } = (await service.db.prepare('SELECT COUNT(*) AS count FROM jobs').first<{ count: number }>())!;
      expect(count).toBe(0);
      for (const file of filesToLoad(packInUse(readManifest(root)))) {
        expect((await service.bucket.head(modelKey(file)))?.size).toBe(file.bytes);
      }
      expect((statSync(join(stateDir, 'secrets.json')).mode & 0o777).toString(8)).toBe('600');
      expect((statSync(join(stateDir, 'owner.json')).mode & 0o777).toString(8)).toBe('600');
    } finally {
      await service.stop();
    }
    expect(existsSync(join(stateDir, 'owner.json'))).toBe(false);

    const args = [wranglerScript(), 'd1', 'migrations', 'list', 'DB', '--local', '--persist-to', stateDir];
    const env = { ...process.env, ...quietWranglerEnv() };
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env });
    expect(stdout).toContain('No migrations to apply');
  });

  it('continues with one warning if service.log cannot be written', async () => {
    mkdirSync(join(stateDir, 'service.log'));
    const warnings: string[] = [];
    const service = await startLocalService({ stateDir, onWarning: (message) => warnings.push(message) });
    try {
      expect((await fetch(`${service.url}/v1/test`)).status).toBe(401);
    } finally {
      await service.stop();
    }
    expect(warnings).toEqual([expect.stringMatching(/the log cannot be written .*service\.log/)]);
  });

  it('deletes expired uploads in the scheduled handler', async () => {
    const lines: string[] = [];
    const service = await startLocalService({ stateDir, onLog: (text) => lines.push(text) });
    try {
      const row = 'INSERT INTO media (account_id, name, object_key, created_at, expires_at) VALUES (?1, ?2, ?2, 0, ?3)';
      for (const [key, expiresAt] of Object.entries({ 'media/old': 1, 'media/new': Date.now() + 60_000 })) {
        await service.bucket.put(key, 'sound');
        await service.db.prepare(row).bind('a', key, expiresAt).run();
      }
      await service.runScheduled('*/5 * * * *');
      expect(await service.bucket.head('media/old')).toBeNull();
      expect(await service.bucket.head('media/new')).not.toBeNull();
    } finally {
      await service.stop();
    }
    expect(lines.join('')).not.toMatch(/error|exception/i);
  });

  it('runs beside a service with another state folder and port', async () => {
    const otherState = mkdtempSync(join(tmpdir(), 'rollcall-state-'));
    try {
      const one = await start();
      const other = await startService(otherState);
      running.push(other);
      expect(await Promise.all([keyWorks(one), keyWorks(other)])).toEqual([true, true]);
      expect(await keyWorks({ url: one.url, key: other.key })).toBe(false);
      const diarize = ['--model', 'community-1', conversation];
      const run = (state: string) => runCli('diarize', diarize, { ROLLCALL_STATE: state });
      const results = await Promise.all([run(stateDir), run(otherState)]);
      expect(results.map(({ code }) => code)).toEqual([0, 0]);
      expect(results[0]!.stdout).toBe(results[1]!.stdout);
      const jobsOf = async (service: RunningService) => {
        const listed = await new RollcallClient(service).list();
        return listed.ok ? listed.value.items.map(({ id }) => id) : listed;
      };
      const jobs = [await jobsOf(one), await jobsOf(other)];
      expect(jobs).toEqual([[expect.any(String)], [expect.any(String)]]);
      expect(jobs[0]).not.toEqual(jobs[1]);
      await one.killAll();
      expect(await keyWorks(other)).toBe(true);
    } finally {
      await running[1]?.killAll();
      rmSync(otherState, { recursive: true, force: true, maxRetries: 5 });
    }
  });

  it('keeps its state and key over a restart, on the port in PORT', async () => {
    const first = await start();
    expect(await keyWorks(first)).toBe(true);
    const { port } = new URL(first.url);
    expect(await first.interrupt()).toBe(0);
    expect(first.workerdPids()).toEqual([]);

    const second = await start(Number(port));
    expect(second.url).toBe(first.url);
    expect(second.key).toBe(first.key);
    expect(await keyWorks(second)).toBe(true);
  });

  it('ends the workerd of a killed service and takes over its port and files', async () => {
    const first = await start();
    await first.killParent();
    const orphans = first.workerdPids();
    expect(orphans).toHaveLength(1);

    const second = await start(Number(new URL(first.url).port));
    expect(findProcess(orphans[0])).toBeUndefined();
    expect(second.workerdPids()).toHaveLength(1);
    expect(second.key).toBe(first.key);
    expect(await keyWorks(second)).toBe(true);
  });

  it('reports in one line that its port or folder is in use', async () => {
    const holder = createServer();
    await new Promise<void>((done) => holder.listen(0, '127.0.0.1', done));
    const address = holder.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const refused = await runCli('start', [], { ROLLCALL_STATE: stateDir, PORT: String(port) });
    holder.close();
    expect(refused.code).toBe(1);
    expect(refused.stdout).toBe('');
    expect(refused.stderr).toMatch(
      new RegExp(
        '^rollcall is starting …\n' +
          `rollcall: Port ${port} on 127\\.0\\.0\\.1 is in use.*variable PORT, for example 8788\\.\\n$`,
      ),
    );

    const service = await start();
    const again = await runCli('start', [], { ROLLCALL_STATE: stateDir, PORT: '0' });
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toBe(
      `rollcall is starting …\nrollcall: The service is already running on ${service.url} (process ${service.pid}).\n`,
    );
    expect(await keyWorks(service)).toBe(true);

    const nonsense = await runCli('start', [], { ROLLCALL_STATE: stateDir, PORT: 'eighty' });
    expect(nonsense.code).toBe(2);
  });

  it('survives SIGHUP when it does not write to the terminal', async () => {
    const service = await start(0, true);
    process.kill(-service.pid, 'SIGHUP'); // as a shell does when its terminal is closed
    await new Promise((wake) => setTimeout(wake, 1500));
    expect(await keyWorks(service), service.log()).toBe(true);
    expect(await service.interrupt()).toBe(0);
  });

  it('ends when the shell in which npm runs it is killed', async () => {
    const script = '"$0" bin/rollcall.js serve; :'; // `:` prevents sh from replacing itself with the command
    const env = { ...process.env, npm_lifecycle_event: 'start', ROLLCALL_STATE: stateDir, PORT: '0' };
    const shell = spawn('sh', ['-c', script, process.execPath], {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await new Promise((listens) => shell.stdout.once('data', listens));
    const { pid, port } = runningOwner(stateDir)!;
    try {
      shell.kill('SIGTERM');
      await expect.poll(() => findProcess(pid), { timeout: 10_000 }).toBeUndefined();
      await expect(fetch(`http://127.0.0.1:${port}/v1/test`)).rejects.toThrow();
      expect(existsSync(join(stateDir, 'owner.json'))).toBe(false);
    } finally {
      if (findProcess(pid)) process.kill(pid, 'SIGINT');
    }
  });

  it('restarts a dead workerd three times and then exits with a message', async () => {
    const service = await start();
    const killWorkerd = async (): Promise<void> => {
      await expect.poll(() => service.workerdPids(), { timeout: 20_000 }).toHaveLength(1);
      const [workerd] = service.workerdPids();
      process.kill(workerd, 'SIGKILL');
      await expect.poll(() => findProcess(workerd)).toBeUndefined();
    };
    for (let death = 1; death <= 3; death++) {
      await killWorkerd();
      await expect.poll(() => keyWorks(service).catch(() => false), { timeout: 20_000 }).toBe(true);
      await expect.poll(() => service.log().match(RESTART)?.length).toBe(death);
    }
    await killWorkerd();
    await expect.poll(() => findProcess(service.pid), { timeout: 10_000 }).toBeUndefined();
    expect(service.log()).toContain('keeps ending unexpectedly. No job is lost');
    expect(service.workerdPids()).toEqual([]);
  });

  it('keeps the service object usable over a restart of workerd', async () => {
    const warnings: string[] = [];
    const service = await startLocalService({ stateDir, onWarning: (message) => warnings.push(message) });
    try {
      await service.db.prepare('CREATE TABLE kept (value)').run();
      await service.bucket.put('kept', 'sound');
      const workerd = listProcesses().find(({ command }) => command.includes(`entry=127.0.0.1:${service.port} `))!;
      expect(workerd.command).toContain('workerd');
      process.kill(workerd.pid, 'SIGKILL');
      await expect.poll(() => warnings, { timeout: 20_000 }).toHaveLength(1);
      await service.runScheduled('*/5 * * * *');
      expect(warnings[0]).toMatch(/^warning: the local runtime .* ended unexpectedly and is restarted\. Jobs continue/);
      expect(await service.db.prepare('SELECT COUNT(*) AS count FROM kept').first('count')).toBe(0);
      expect((await service.bucket.head('kept'))?.size).toBe(5);
      expect((await fetch(`${service.url}/v1/test`)).status).toBe(401);
    } finally {
      await service.stop();
    }
    expect(listProcesses().filter(({ command }) => command.includes(`entry=127.0.0.1:${service.port} `))).toEqual([]);
  });
});

describe('npm run key', () => {
  const env = () => ({ ROLLCALL_STATE: stateDir });

  it('creates, lists and revokes keys while the service runs', async () => {
    const service = await start();
    const created = await runCli(
      'key',
      ['--account', 'ann', '--subscribe', '--scopes', 'jobs:read', '--expires', '30d'],
      env(),
    );
    expect(created.code).toBe(0);
    expect(created.stdout).toMatch(/^ey\S+\n$/);
    const key = created.stdout.trim();
    const keyId = /key id (\S+)/.exec(created.stderr)?.[1] ?? '';
    expect(await keyWorks({ url: service.url, key })).toBe(true);
    const refused = await new RollcallClient({ url: service.url, key }).diarize({ url: 'https://example.com/a.wav' });
    expect(refused).toMatchObject({ ok: false, error: { kind: 'refused', status: 403 } });

    const listed = await runCli('key', ['--list', '--account', 'ann'], env());
    expect(listed.stdout).toMatch(new RegExp(`^${keyId}  ann  active  \\S+  \\S+  jobs:read\\n$`));
    expect((await runCli('key', ['--revoke', keyId], env())).code).toBe(0);
    expect(await keyWorks({ url: service.url, key })).toBe(false);
    expect((await runCli('key', ['--list', '--account', 'ann'], env())).stdout).toContain('  revoked  ');
    expect((await runCli('key', ['--revoke', 'nothing'], env())).code).toBe(1);
  });

  it('creates a key with credit before the first start of the service', async () => {
    const created = await runCli('key', ['--account', 'bob', '--credit', '3600'], env());
    expect(created.code).toBe(0);
    const service = await startLocalService({ stateDir });
    try {
      expect(await keyWorks({ url: service.url, key: created.stdout.trim() })).toBe(true);
      const account = await service.db
        .prepare("SELECT credit_seconds, subscribed FROM accounts WHERE name = 'bob'")
        .first();
      expect(account).toEqual({ credit_seconds: 3600, subscribed: 0 });
      await service.db.prepare('UPDATE api_keys SET expires_at = 1e17').run();
      const listed = await runCli('key', ['--list'], env());
      expect(listed, 'accepts an expiry outside the calendar').toMatchObject({ code: 0, stderr: '' });
      expect(listed.stdout).toContain('bob  active');
    } finally {
      await service.stop();
    }
  });

  it('refuses wrong usage', async () => {
    const wrong = [
      [],
      ['--account', ''],
      ['--account', 'x', '--scopes', 'jobs:all'],
      ['--account', 'x', '--expires', '30'],
      ['--account', 'x', '--expires', '999999999d'],
      ['--account', 'x', '--credit', 'much'],
      ['--account', 'x', '--origins', 'https://a.example/path'],
      ['--account', 'x', '--origins', 'https://a.example,b.example'],
      ['--list', '--origins', 'https://a.example'],
      ['--account', 'x', '--revoke', 'y'],
      ['--list', 'x'],
    ];
    for (const args of wrong) {
      expect(await runCli('key', args, env()), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
    }
  });
});
