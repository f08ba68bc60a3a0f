import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { filesToLoad, packInUse } from '../../src/platform/onnx/manifest.ts';
import { root, runCli } from '../../test/helpers/local-process.ts';
import { LocalStateError } from '../local/paths.ts';
import { modelKey, readManifest } from '../models/store.ts';
import { API, JOBS, LIVE, WORKERS } from '../workers.ts';
import { BUCKET, DATABASE, QUEUES, writeDeployConfig } from './config.ts';
import { rehearse } from './deploy.ts';
import { mustWrangler } from './wrangler.ts';

describe('npm run deploy -- --dry-run', () => {
  it('bundles the Workers and lists the resources and steps of a deployment', async () => {
    const run = await runCli('deploy', ['--dry-run'], { CLOUDFLARE_API_TOKEN: '' });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    const lines = run.stdout.split('\n');
    for (const [index, { name }] of WORKERS.entries()) {
      const [, upload] = lines[index]!.split(`worker: ${name}, `);
      expect(upload).toMatch(/^Total Upload: \d.* KiB \/ gzip: \d.* KiB$/);
    }
    expect(lines).toContain(`database: D1 ${DATABASE}, created if missing, then migrated`);
    expect(lines).toContain(`storage: R2 bucket ${BUCKET}, created if missing`);
    expect(lines).toContain('lifecycle: work/ deleted after 7 days, added if missing');
    for (const queue of QUEUES) expect(lines).toContain(`queue: ${queue}, created if missing`);
    for (const file of filesToLoad(packInUse(readManifest(root)))) {
      expect(lines).toContain(`model: ${file.path} → ${modelKey(file)}`);
    }
    expect(lines).toContain('secret: SIGNING_KEY of rollcall, created if missing');
    expect(lines).toContain('secret: SIGNING_KEY of rollcall-jobs, created if missing');
  }, 90_000);

  it('reports missing models and a faulty manifest', async () => {
    const checkout = mkdtempSync(join(tmpdir(), 'rollcall-deploy-'));
    const manifest = join(checkout, 'models', 'manifest.json');
    const rehearsal = () => rehearse({ root: checkout, say: () => {} });
    try {
      mkdirSync(join(checkout, 'models'));
      cpSync(join(root, 'models', 'manifest.json'), manifest);
      await expect(rehearsal()).rejects.toThrow(/^Missing or damaged: models\/.*\. Check out the repository again\.$/);
      writeFileSync(manifest, '{"version":1,}');
      await expect(rehearsal()).rejects.toThrow(LocalStateError);
      await expect(rehearsal()).rejects.toThrow(`${manifest} is not JSON`);
    } finally {
      rmSync(checkout, { recursive: true });
    }
  });
});

describe('writeDeployConfig', () => {
  let checkout: string;
  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'rollcall-deploy-'));
    for (const { config } of WORKERS) cpSync(join(root, config), join(checkout, config));
  });
  afterEach(() => rmSync(checkout, { recursive: true }));

  it("writes a copy with the account's database and absolute paths without changing the original", () => {
    const copy = readFileSync(writeDeployConfig(checkout, API, 'id-of-the-account'), 'utf8').split('\n');
    const original = readFileSync(join(checkout, 'wrangler.toml'), 'utf8').split('\n');
    expect(original.join('\n')).toBe(readFileSync(join(root, 'wrangler.toml'), 'utf8'));
    expect(copy.slice(original.length - 1)).toEqual(['', '[ai]', 'binding = "AI"', '']);
    expect(
      copy
        .slice(0, original.length - 1)
        .filter((line, at) => line !== original[at])
        .sort(),
    ).toEqual([
      ...['ajv', 'ajv-formats'].map((name) => `"${name}" = "${join(checkout, 'src/routes/no-ajv.ts')}"`),
      'database_id = "id-of-the-account"',
      `main = "${join(checkout, 'src/worker.ts')}"`,
      `migrations_dir = "${join(checkout, 'migrations')}"`,
    ]);
  });

  it('writes the transcription engines of the environment without their keys', () => {
    vi.stubEnv('ROLLCALL_ASR_URL', 'https://api.example/v1');
    vi.stubEnv('ROLLCALL_ASR_KEY', 'secret');
    vi.stubEnv('ROLLCALL_ASR_URL_ASR_LARGE_V3_TURBO', 'workers-ai');
    try {
      const copy = readFileSync(writeDeployConfig(checkout, JOBS, 'id'), 'utf8');
      expect(copy).toContain('"86400"\nROLLCALL_ASR_URL = "https://api.example/v1"\n');
      expect(copy).toContain('\nROLLCALL_ASR_URL_ASR_LARGE_V3_TURBO = "workers-ai"\n');
      expect(copy).not.toContain('secret');
      expect(readFileSync(writeDeployConfig(checkout, API, 'id'), 'utf8')).toContain('\nROLLCALL_ASR_URL = ');
      expect(readFileSync(writeDeployConfig(checkout, LIVE, 'id'), 'utf8')).not.toMatch(/ROLLCALL_ASR|\[ai\]/);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('refuses a file with two lines for one setting', () => {
    writeFileSync(join(checkout, 'wrangler.toml'), 'main = "a.ts"\nmain = "b.ts"\n');
    expect(() => writeDeployConfig(checkout, API, 'id')).toThrow('wrangler.toml must have one line main = "…"');
  });
});

describe('mustWrangler', () => {
  it("returns wrangler's output and throws its error message", async () => {
    expect(await mustWrangler(root, ['--version'])).toMatch(/\d+\.\d+\.\d+/);
    expect(existsSync(join(tmpdir(), 'rollcall-wrangler-logs')), 'the run must not leave a log').toBe(false);
    const folder = mkdtempSync(join(tmpdir(), 'rollcall-home-'));
    try {
      vi.stubEnv('HOME', folder);
      vi.stubEnv('CLOUDFLARE_API_TOKEN', '');
      await expect(mustWrangler(root, ['d1', 'list'])).rejects.toThrow(
        'Not logged in to Cloudflare. Run npx wrangler login',
      );
    } finally {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    }
    await expect(mustWrangler(root, ['nonsense'])).rejects.toThrow(/^wrangler nonsense failed:\n.*Unknown argument/s);
  });
});
