import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { root } from '../../test/helpers/local-process.ts';
import { WORKERS } from '../workers.ts';
import { deploy } from './deploy.ts';
import { keepSigningKey } from './signing-key.ts';

/** What an account has, as far as the commands of a deployment ask. */
const account = vi.hoisted(() => ({
  /** Names of secrets by Worker. */
  workers: new Map<string, Record<string, string>>(),
  /** Commands that changed something. */
  changes: [] as string[],
}));
vi.mock('./wrangler.ts', () => {
  const option = (args: readonly string[], name: string) => args[args.indexOf(name) + 1];
  const wrangler = async (_root: string, args: readonly string[]) => {
    const done = (stdout = '', code = 0) => ({ code, stdout, stderr: '' });
    const config = args.includes('--config') ? option(args, '--config') : '';
    const name = config && /^name = "(.+)"$/m.exec(readFileSync(config, 'utf8'))![1]!;
    const command = args.slice(0, 2).join(' ');
    if (command === 'd1 list') return done('[{"name":"rollcall","uuid":"id"}]');
    if (command === 'secret list') {
      const secrets = account.workers.get(name);
      if (!secrets) return done(`Worker "${name}" not found.`, 1);
      return done(JSON.stringify(Object.keys(secrets).map((secret) => ({ name: secret }))));
    }
    if (args[0] === 'deploy') {
      const file = args.includes('--secrets-file') && option(args, '--secrets-file');
      const secrets = file ? JSON.parse(readFileSync(file, 'utf8')) : {};
      account.workers.set(name, { ...account.workers.get(name), ...secrets });
      account.changes.push(`deploy ${basename(config)}`);
    } else account.changes.push(command);
    return done();
  };
  return { wrangler, mustWrangler: async (...call: Parameters<typeof wrangler>) => (await wrangler(...call)).stdout };
});

let checkout: string;
beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'rollcall-deploy-'));
  for (const { config } of WORKERS) cpSync(join(root, config), join(checkout, config));
  symlinkSync(join(root, 'models'), join(checkout, 'models'));
  account.workers.clear();
  account.changes = [];
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(checkout, { recursive: true });
});
const deployed = () => deploy({ root: checkout, say: () => {} });

describe('a deployment', () => {
  it('creates the owners of objects before the Worker that is bound to them, after the migrations of the database', async () => {
    await deployed();
    const order = account.changes.filter((change) => /^(d1 migrations|deploy)/.test(change));
    expect(order).toEqual(['d1 migrations', ...WORKERS.map(({ config }) => `deploy ${config}`)]);
    expect(WORKERS.at(-1)!.name).toBe('rollcall');
  });

  it('gives those that sign the same new key, and only the one that calls engines their keys', async () => {
    vi.stubEnv('ROLLCALL_ASR_KEY', 'engine');
    await deployed();
    const { workers } = account;
    const key = workers.get('rollcall')!.SIGNING_KEY;
    expect(Buffer.from(key, 'base64')).toHaveLength(32);
    expect(Object.fromEntries(workers)).toEqual({
      'rollcall-jobs': { SIGNING_KEY: key, ROLLCALL_ASR_KEY: 'engine' },
      'rollcall-live': {},
      rollcall: { SIGNING_KEY: key },
    });
    await deployed();
    expect(workers.get('rollcall')!.SIGNING_KEY).toBe(key);
  });

  it('gives the key of an earlier deployment with a single Worker to the new ones', async () => {
    account.workers.set('rollcall', { SIGNING_KEY: 'old' });
    keepSigningKey(checkout, 'old');
    await deployed();
    expect(account.workers.get('rollcall-jobs')).toEqual({ SIGNING_KEY: 'old' });
  });

  it('changes nothing where that key is not known: webhooks would be signed with another', async () => {
    account.workers.set('rollcall', { SIGNING_KEY: 'old' });
    vi.stubEnv('ROLLCALL_SIGNING_KEY', '');
    await expect(deployed()).rejects.toThrow('rollcall-jobs needs the SIGNING_KEY of the deployed service.');
    expect(account.changes).toEqual([]);
  });
});
