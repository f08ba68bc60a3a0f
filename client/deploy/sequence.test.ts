import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { root as project } from '../../test/helpers/local-process.ts';
import { WORKERS } from '../workers.ts';
import { QUEUES } from './config.ts';
import { addressIn, deploy } from './deploy.ts';
import { destroy } from './destroy.ts';
import { FakeAccount } from './fake-account.fixture.ts';
import { nameFault } from './naming.ts';
import { endRotation, rotateSigningKey } from './secrets.ts';
import { keepSigningKey, signingKeyPath } from './signing-key.ts';
import { setUpUploads } from './uploads.ts';

/** Replaces a real account. */
let account: FakeAccount;
vi.mock('./wrangler.ts', () => ({
  wrangler: async (_root: string, args: string[], input?: string) => account.wrangler(args, input),
  mustWrangler: async (_root: string, args: string[], input?: string) => {
    const { code, stdout } = account.wrangler(args, input);
    if (code !== 0) throw new Error(`wrangler ${args.join(' ')} failed`);
    return stdout;
  },
}));

let root: string;
let output: string[];
const say = (line: string): void => void output.push(line);
const failIfAsked = async (question: string): Promise<string> => expect.fail(`asked: ${question}`);
const answering = (answer: string) => async () => answer;

/** Requests to the deployed service. */
let requests: string[];
/** Speakers in the result of its only job. */
let speakers: string[];
beforeEach(() => {
  account = new FakeAccount();
  output = [];
  requests = [];
  speakers = ['SPEAKER_00', 'SPEAKER_01'];
  root = mkdtempSync(join(tmpdir(), 'rollcall-sequence-'));
  for (const { config } of WORKERS) cpSync(join(project, config), join(root, config));
  mkdirSync(join(root, 'test'));
  symlinkSync(join(project, 'models'), join(root, 'models'));
  symlinkSync(join(project, 'test', 'fixtures'), join(root, 'test', 'fixtures'));
  vi.stubGlobal('fetch', async (url: string, { method = 'GET' } = {}) => {
    const { host, pathname } = new URL(url);
    requests.push(`${method} ${host}${pathname}`);
    if (pathname === '/v1/diarize') return Response.json({ jobId: 'job', status: 'created' });
    if (method === 'DELETE') return new Response(null, { status: 204 });
    const diarization = speakers.map((speaker, i) => ({ speaker, start: i, end: i + 1 }));
    if (pathname === '/v1/jobs/job')
      return Response.json({
        jobId: 'job',
        status: 'succeeded',
        createdAt: '',
        updatedAt: '',
        output: { diarization },
      });
    return Response.json({ status: 'OK', message: 'It works.' });
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

const withoutModels = (changes: string[]) => changes.filter((call) => !call.startsWith('r2 object put'));
const secretsOf = (worker: string) => account.workers.get(worker) ?? {};
const withoutRules = (changes: string[]) => changes.filter((call) => !call.includes('lifecycle add'));

describe('a first deployment', () => {
  it('creates missing resources and uploads secrets together with the code', async () => {
    await deploy({ root, say }, failIfAsked);
    expect(withoutRules(withoutModels(account.changes))).toEqual([
      'd1 create rollcall',
      'r2 bucket create rollcall',
      ...QUEUES.map((queue) => `queues create ${queue}`),
      'd1 migrations apply DB --remote --config FILE',
      ...WORKERS.map(() => 'deploy --minify --keep-vars --config FILE --secrets-file FILE'),
    ]);
    const storedKey = readFileSync(signingKeyPath(root), 'utf8').trim();
    expect(Buffer.from(storedKey, 'base64')).toHaveLength(32);
    expect([...account.workers]).toEqual(WORKERS.map(({ name }) => [name, { SIGNING_KEY: storedKey }]));
    for (const config of account.configs.values()) expect(config).not.toContain(storedKey);
    expect([...account.rules].length).toBeGreaterThan(3);
  });

  it('stores keys of engines as secrets only in the Worker that calls the engines', async () => {
    vi.stubEnv('ROLLCALL_ASR_KEY', 'of the engine');
    await deploy({ root, say }, failIfAsked);
    expect(secretsOf('rollcall-jobs')).toMatchObject({ ROLLCALL_ASR_KEY: 'of the engine' });
    expect(Object.keys({ ...secretsOf('rollcall'), ...secretsOf('rollcall-live') })).toEqual(['SIGNING_KEY']);
    expect(output.join('\n')).not.toContain('of the engine');
  });

  it('prints address, playground and first key and tests the service', async () => {
    await deploy({ root, say }, failIfAsked);
    const host = 'rollcall.acme.workers.dev';
    expect(output).toContain(`address: https://${host}`);
    expect(output).toContain(`playground: https://${host}/`);
    expect(output.filter((line) => /^key: ey\S+\.\S+\.\S+$/.test(line))).toHaveLength(1);
    expect(output.at(-1)).toMatch(/^smoke test: found the 2 speakers of a conversation in \d+ s$/);
    expect(requests).toEqual([
      `GET ${host}/healthz`,
      `GET ${host}/v1/test`,
      `POST ${host}/v1/diarize`,
      `GET ${host}/v1/jobs/job`,
      `DELETE ${host}/v1/jobs/job`,
    ]);
  });

  it('fails with the commands for a rollback if the service does not work', async () => {
    speakers = ['SPEAKER_00'];
    await expect(deploy({ root, say, instance: 'staging' }, failIfAsked)).rejects.toThrow(
      /does not work: a conversation has 1 speakers\. .*rollback --name staging && .*rollback --name staging-live && /,
    );
  });

  it('asks before it takes over existing resources and changes nothing after a no', async () => {
    account.databases.add('rollcall');
    account.queues.add('rollcall-jobs');
    account.workers.set('rollcall', {});
    const questions: string[] = [];
    const ask = async (question: string) => {
      questions.push(question);
      return 'n';
    };
    await expect(deploy({ root, say }, ask)).rejects.toThrow('Canceled; nothing was changed.');
    expect(account.changes).toEqual([]);
    expect(questions).toEqual([
      'The account already has the Worker rollcall, whose code would be replaced, the D1 database rollcall, ' +
        'the queue rollcall-jobs. Use them? [y/N] ',
    ]);
    await deploy({ root, say }, answering('y'));
    expect(account.changes).not.toContain('d1 create rollcall');
    expect(account.changes).not.toContain('queues create rollcall-jobs');
  });
});

it('creates no resource or key and asks nothing in a later deployment', async () => {
  await deploy({ root, say }, failIfAsked);
  const workers = new Map(account.workers);
  account.calls.length = 0;
  output = [];
  await deploy({ root, say }, failIfAsked);
  expect(withoutModels(account.changes)).toEqual([
    'd1 migrations apply DB --remote --config FILE',
    ...WORKERS.map(() => 'deploy --minify --keep-vars --config FILE'),
  ]);
  expect(account.workers).toEqual(workers);
  expect(output.filter((line) => line.startsWith('key: '))).toEqual([]);
  expect(output.at(-1)).toMatch(/^smoke test: /);
});

describe('a deployment if only the Worker that answers HTTP has a signing key', () => {
  beforeEach(() => {
    account.workers.set('rollcall', { SIGNING_KEY: 'old' });
    vi.stubEnv('ROLLCALL_SIGNING_KEY', '');
  });

  it('stores the copy of the key in the other Workers', async () => {
    const old = Buffer.alloc(32, 1).toString('base64');
    account.workers.set('rollcall', { SIGNING_KEY: old });
    keepSigningKey(root, old);
    await deploy({ root, say }, failIfAsked);
    for (const name of ['rollcall-jobs', 'rollcall-live']) expect(secretsOf(name)).toEqual({ SIGNING_KEY: old });
  });

  it('changes nothing if there is no copy of the key', async () => {
    await expect(deploy({ root, say }, failIfAsked)).rejects.toThrow(
      'SIGNING_KEY of the service is needed for rollcall-jobs, rollcall-live',
    );
    expect(account.changes).toEqual([]);
  });
});

it('separates the resources and signing keys of two instances', async () => {
  await deploy({ root, say }, failIfAsked);
  await deploy({ root, say, instance: 'rollcall-staging' }, failIfAsked);
  const names = WORKERS.map(({ name }) => name);
  const staged = names.map((name) => name.replace('rollcall', 'rollcall-staging'));
  expect([...account.workers.keys()]).toEqual([...names, ...staged]);
  expect([...account.databases]).toEqual(['rollcall', 'rollcall-staging']);
  expect([...account.buckets]).toEqual(['rollcall', 'rollcall-staging']);
  expect([...account.queues].filter((name) => name.startsWith('rollcall-staging-'))).toHaveLength(QUEUES.length);
  expect(existsSync(signingKeyPath(root, 'rollcall-staging'))).toBe(true);
  const ids = (worker: string) =>
    [...account.configs.get(worker)!.matchAll(/^namespace_id = "(\d+)"$/gm)].map(([, id]) => id);
  expect(ids('rollcall-staging').length).toBeGreaterThan(1);
  expect(ids('rollcall-staging').filter((id) => ids('rollcall').includes(id))).toEqual([]);
  for (const worker of staged) {
    const named = [...account.configs.get(worker)!.matchAll(/"(rollcall[^"]*)"/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((name) => !name?.startsWith('rollcall-staging'))).toEqual([]);
  }
});

it('refuses names of instances that could be names of Workers', () => {
  expect(nameFault('staging')).toBeUndefined();
  for (const name of ['staging-jobs', 'rollcall-live']) expect(nameFault(name)).toContain('must not end in');
});

it('enables the traces of all Workers until the next deployment without --traces', async () => {
  const traced = () =>
    [...account.configs.values()].map((text) => text.includes('[observability.traces]\nenabled = true'));
  await deploy({ root, say, traces: true }, failIfAsked);
  expect(traced()).toEqual([true, true, true]);
  await deploy({ root, say }, failIfAsked);
  expect(traced()).toEqual([false, false, false]);
});

describe('a jurisdiction', () => {
  it('applies to database, bucket and Durable Objects, also in later deployments', async () => {
    await deploy({ root, say, jurisdiction: 'eu' }, failIfAsked);
    expect(account.changes).toContain('d1 create rollcall --jurisdiction eu');
    expect([...account.buckets]).toEqual(['rollcall in eu']);
    for (let round = 0; round < 2; round++) {
      for (const [worker, config] of account.configs) {
        expect(config).toContain('bucket_name = "rollcall"\njurisdiction = "eu"\n');
        // rollcall-live calls no Durable Objects.
        if (worker !== 'rollcall-live') expect(config).toContain('[vars]\nJURISDICTION = "eu"\n');
      }
      const ofBucket = account.calls.filter(([kind, , verb]) => kind === 'r2' && verb !== 'info');
      expect(ofBucket.filter((call) => !call.join(' ').endsWith('--jurisdiction eu'))).toEqual([]);
      account.calls.length = 0;
      await deploy({ root, say }, failIfAsked);
    }
  });

  it('cannot be changed', async () => {
    await deploy({ root, say }, failIfAsked);
    account.calls.length = 0;
    await expect(deploy({ root, say, jurisdiction: 'eu' }, failIfAsked)).rejects.toThrow('cannot be changed');
    expect(account.changes).toEqual([]);
  });
});

describe('--destroy', () => {
  it('deletes nothing unless the name is typed', async () => {
    await deploy({ root, say }, failIfAsked);
    account.calls.length = 0;
    await expect(destroy(root, 'rollcall', say, answering('yes'))).rejects.toThrow('Canceled; nothing was deleted.');
    expect(account.changes).toEqual([]);
  });

  it('deletes all resources, the Workers first, in the reverse order of their deployment', async () => {
    await deploy({ root, say, jurisdiction: 'eu' }, failIfAsked);
    account.calls.length = 0;
    await destroy(root, 'rollcall', say, answering('rollcall'));
    expect(account.changes.slice(0, 3)).toEqual([
      'delete rollcall --force',
      'delete rollcall-live --force',
      'delete rollcall-jobs --force',
    ]);
    const { workers, databases, buckets, queues } = account;
    expect([workers.size, databases.size, buckets.size, queues.size]).toEqual([0, 0, 0, 0]);
  });

  it('adds a rule that empties the bucket and deletes the bucket in a second call', async () => {
    await deploy({ root, say }, failIfAsked);
    account.objects.add('rollcall/media/a');
    await destroy(root, 'rollcall', say, answering('rollcall'));
    expect([...account.rules]).toContain('rollcall-everything-1d');
    expect([...account.buckets]).toEqual(['rollcall']);
    account.objects.clear(); // a day later
    await destroy(root, 'rollcall', say, answering('rollcall'));
    expect([...account.buckets]).toEqual([]);
  });
});

it('asks for the credentials of uploads and stores all four at once', async () => {
  await deploy({ root, say }, failIfAsked);
  account.calls.length = 0;
  const ask = async (question: string) => (question.startsWith('Secret') ? 'secret' : 'id');
  await setUpUploads({ root, instance: 'rollcall', jurisdiction: undefined, say, ask });
  expect(account.changes).toEqual(['secret bulk --name rollcall-jobs', 'secret bulk --name rollcall']);
  for (const worker of ['rollcall', 'rollcall-jobs']) {
    expect(secretsOf(worker)).toMatchObject({
      R2_ACCOUNT_ID: 'account',
      R2_BUCKET_NAME: 'rollcall',
      R2_ACCESS_KEY_ID: 'id',
      R2_SECRET_ACCESS_KEY: 'secret',
    });
  }
  expect(output.join('\n')).not.toMatch(/: (id|secret)$/m);
});

describe('the rotation of the signing key', () => {
  it('changes the key of every Worker and keeps the previous key until its end', async () => {
    await deploy({ root, say }, failIfAsked);
    const { SIGNING_KEY: first } = secretsOf('rollcall');
    await rotateSigningKey(root, 'rollcall', say);
    const second = readFileSync(signingKeyPath(root), 'utf8').trim();
    expect(second).not.toBe(first);
    const names = WORKERS.map(({ name }) => name);
    for (const name of names) expect(secretsOf(name)).toEqual({ SIGNING_KEY: second, SIGNING_KEY_PREVIOUS: first });
    await endRotation(root, 'rollcall', say);
    for (const name of names) expect(secretsOf(name)).toEqual({ SIGNING_KEY: second });
  });

  it('reports which key to use for another attempt after a failure', async () => {
    await deploy({ root, say }, failIfAsked);
    const { SIGNING_KEY: first } = secretsOf('rollcall');
    account.workers.delete('rollcall-jobs');
    await expect(rotateSigningKey(root, 'rollcall', say)).rejects.toThrow('secret bulk --name rollcall-jobs');
    expect(output.join('\n')).toContain('set ROLLCALL_SIGNING_KEY to the previous key');
    expect(readFileSync(`${signingKeyPath(root)}.1`, 'utf8').trim()).toBe(first);
  });
});

it("finds the address in wrangler's output", () => {
  expect(addressIn('Deployed x triggers (1 sec)\n  https://x.acme.workers.dev\nCurrent Version ID: y')).toBe(
    'https://x.acme.workers.dev',
  );
  expect(addressIn('Deployed x triggers\n  api.example.com (custom domain)\n')).toBe('https://api.example.com');
  expect(addressIn('Deployed x triggers\n  example.com/v1/* (zone name: example.com)\n')).toBeUndefined();
});
