import { execFile, execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, startContractService } from '../contract/service.ts';
import { conversation, root } from '../helpers/local-process.ts';
import { voiceSample } from '../helpers/voices.ts';

const run = promisify(execFile);

let project: string;
let service: ContractService;
const file = (name: string) => join(project, name);
/** Code blocks in the package's README of one language. */
const examples = (language: string) =>
  [...readFileSync(join(root, 'client/README.md'), 'utf8').matchAll(/```(\w+)\n(.*?)```/gs)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code);

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'rollcall-client-'));
  const tarball = execFileSync('npm', ['pack', '--silent', '--pack-destination', project], {
    cwd: join(root, 'client'),
    encoding: 'utf8',
  }).trim();
  writeFileSync(file('package.json'), '{"name":"empty","private":true,"type":"module"}');
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--silent', `./${tarball}`], {
    cwd: project,
  });
  copyFileSync(conversation, file('meeting.mp3'));
  writeFileSync(file('alice.wav'), await voiceSample('adam'));
  writeFileSync(file('bob.wav'), await voiceSample('beth'));
  service = await startContractService();
});
afterAll(async () => {
  await service?.stop();
  rmSync(project, { recursive: true, force: true, maxRetries: 5 });
});

async function runJavaScript(code: string): Promise<{ stdout: string; stderr: string }> {
  writeFileSync(file('example.mjs'), code);
  const env = { ...process.env, ROLLCALL_URL: service.url, ROLLCALL_KEY: service.main.token };
  return run(process.execPath, ['example.mjs'], { cwd: project, env });
}

describe('rollcall-client, installed from its tarball', () => {
  it('has no dependencies and contains only the build', () => {
    const tree = execFileSync('npm', ['ls', '--all', '--parseable'], { cwd: project, encoding: 'utf8' });
    expect(tree.trim().split('\n')).toHaveLength(2);
    const declared = readFileSync(file('node_modules/rollcall-client/dist/sdk/types.d.ts'), 'utf8');
    expect(declared).not.toMatch(/zod|\.ts'/);
  });

  it('runs every example of its README from plain JavaScript', async () => {
    const [diarize, identify, jobs, live] = examples('js');
    const turns = await runJavaScript(diarize);
    expect(turns.stdout.trim().split('\n').length).toBeGreaterThan(8);
    expect(turns.stdout).toMatch(/^0\.8\d* 4\.\d+ SPEAKER_00\n/);
    expect(turns.stderr).toMatch(/uploading 100 %\n(.*\n)*running 100 %\n/);
    expect((await runJavaScript(identify)).stdout).toMatch(/Alice\n(.*\n)*.*Bob\n/);
    expect((await runJavaScript(jobs)).stdout).toMatch(/^(\S+ succeeded\n){4}[\d.]+\nrefused 404\n$/);
    expect((await runJavaScript(live)).stdout).toBe('done\n');
  });

  it('rejects with the error of a failed job, and cancels a job when the signal aborts', async () => {
    const { stdout } = await runJavaScript(`
      import { Rollcall } from 'rollcall-client';
      const rollcall = new Rollcall({ url: process.env.ROLLCALL_URL, key: process.env.ROLLCALL_KEY });
      const page = new Blob(['<!doctype html>'.repeat(50)]);
      const failed = await rollcall.diarizeFile(page).catch((error) => error);
      console.log(failed.name, failed.kind, failed.details.code);
      const control = new AbortController();
      const onProgress = ({ stage }) => stage === 'running' && control.abort(new Error('enough'));
      const bytes = new Uint8Array(await (await import('node:fs/promises')).readFile('meeting.mp3'));
      const stopped = await rollcall.diarizeFile(bytes, { signal: control.signal, onProgress }).catch((error) => error);
      const { status } = (await rollcall.jobs().next()).value;
      console.log(stopped.message, status);
    `);
    expect(stdout).toMatch(/^RollcallError failed \w+\nenough canceled\n$/);
  });

  it('has types for TypeScript with nodenext', async () => {
    examples('ts').forEach((code, index) => {
      writeFileSync(file(`example-${index}.ts`), code);
    });
    const program = `import { Rollcall } from 'rollcall-client';
      const { turns } = await new Rollcall({ url: '', key: '' }).diarizeFile(new URL('https://example.com/a.mp3'));
      export const speakers: string[] = turns.map(({ speaker }) => speaker);
      // @ts-expect-error: a start is a number
      export const starts: string[] = turns.map(({ start }) => start);`;
    writeFileSync(file('typed.ts'), program);
    mkdirSync(file('node_modules/@types'), { recursive: true });
    const options = { module: 'nodenext', target: 'es2022', strict: true, noEmit: true, types: ['node'] };
    const typeRoots = [join(root, 'node_modules/@types')];
    writeFileSync(
      file('tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...options, typeRoots }, include: ['*.ts'] }),
    );
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const checked = await run(process.execPath, [tsc, '-p', project], { cwd: project }).catch((error) => error);
    expect(checked.stdout).toBe('');
  });

  it('bundles for browsers without Node modules', async () => {
    const code = `import { Rollcall } from 'rollcall-client'; new Rollcall({ url: location.origin, key: '' });`;
    for (const contents of [...examples('browser'), code]) {
      const { outputFiles } = await build({
        stdin: { contents, resolveDir: project },
        bundle: true,
        write: false,
        format: 'esm',
        platform: 'browser',
        minify: true,
      });
      expect(outputFiles[0].contents.length).toBeLessThan(60_000);
      expect(outputFiles[0].text).not.toMatch(/from ?"node:|require\(/);
    }
  });

  it('verifies genuine, forged, old and rotated webhook signatures', async () => {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const sign = (secret: string, body: string) =>
      createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');
    const cases = [
      ['{"a":1}', { 'x-request-timestamp': timestamp, 'x-signature': sign('whsec_a', '{"a":1}') }],
      ['{"a":2}', { 'x-request-timestamp': timestamp, 'x-signature': sign('whsec_a', '{"a":1}') }],
      ['{"a":1}', { 'x-request-timestamp': '1000', 'x-signature': sign('whsec_a', '{"a":1}') }],
      [
        '{"a":1}',
        {
          'X-Request-Timestamp': timestamp,
          'X-Signature': sign('whsec_b', '{"a":1}'),
          'X-Signature-Previous': sign('whsec_a', '{"a":1}'),
        },
      ],
    ];
    const { stdout } = await runJavaScript(`
      import { verifyWebhook } from 'rollcall-client';
      for (const [body, headers] of ${JSON.stringify(cases)})
        console.log(await verifyWebhook(body, headers, 'whsec_a'));
    `);
    expect(stdout).toBe('true\nfalse\nfalse\ntrue\n');
  });
});
