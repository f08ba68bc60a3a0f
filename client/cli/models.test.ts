import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startServer } from '../../test/helpers/http-server.ts';
import { root as repository, runCli } from '../../test/helpers/local-process.ts';
import { helloTarBz2 } from '../models/bunzip2.fixture.ts';

/** A checkout with the real manifest in which small files replace the files of the studio pack. */
let root: string;
const weights = new TextEncoder().encode('not really an embedder');
const hello = new TextEncoder().encode('hello, who spoke when?\n'.repeat(40));

const pin = (bytes: Uint8Array) => ({ bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'rollcall-models-'));
  mkdirSync(join(root, 'models'));
  const manifest = JSON.parse(readFileSync(join(repository, 'models', 'manifest.json'), 'utf8'));
  const { segmentation, embedding } = manifest.packs.studio;
  const tar = { url: segmentation.files.model.origin.url, ...pin(helloTarBz2), member: 'pack/hello.txt' };
  Object.assign(segmentation.files.model, pin(hello), { origin: tar });
  Object.assign(embedding.files.model, pin(weights), {
    origin: { url: embedding.files.model.origin.url, ...pin(weights) },
  });
  writeFileSync(join(root, 'models', 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

it('pulls, verifies and selects the studio pack from its public addresses', async () => {
  const server = await startServer((request, response) => {
    response.end(request.url?.endsWith('.tar.bz2') ? helloTarBz2 : weights);
  });
  const models = (...args: string[]) =>
    runCli('models', args, { ROLLCALL_MODELS_ROOT: root, ROLLCALL_MODELS_MIRROR: server.origin });
  try {
    const listed = (await models('list')).stdout;
    expect(listed).toMatch(/^\* default {2}not complete. Check out the repository again.$/m);
    expect(listed).toMatch(/^ {2}studio {2}not complete. Get them with: npm run models -- pull studio$/m);
    const early = await models('use', 'studio');
    expect(early).toMatchObject({ code: 1, stdout: '' });
    expect(early.stderr).toContain('npm run models -- pull studio');

    const pulled = await models('pull', 'studio');
    expect(pulled.code).toBe(0);
    expect(pulled.stdout.match(/pulled and verified/g)).toHaveLength(2);
    const releases = '/github.com/k2-fsa/sherpa-onnx/releases/download';
    expect(server.requests.map(({ path }) => path)).toEqual([
      `${releases}/speaker-segmentation-models/sherpa-onnx-pyannote-segmentation-3-0.tar.bz2`,
      `${releases}/speaker-recongition-models/wespeaker_en_voxceleb_resnet34_LM.onnx`,
    ]);
    expect((await models('pull', 'studio')).stdout.match(/already present/g)).toHaveLength(2);
    expect(await models('verify', 'studio')).toMatchObject({ code: 0 });

    const used = await models('use', 'studio');
    expect(used.code).toBe(0);
    expect(used.stderr).toContain('too slow for live streams');
    expect((await models('list')).stdout).toMatch(/^\* studio {2}ready/m);

    writeFileSync(join(root, 'models/studio/wespeaker_en_voxceleb_resnet34_LM.onnx'), 'damaged');
    const verified = await models('verify', 'studio');
    expect(verified.code).toBe(1);
    expect(verified.stdout).toContain('resnet34_LM.onnx  damaged');
  } finally {
    await server.close();
  }
});

it('lists the packs for an unknown name and reports an address that does not answer', async () => {
  const env = { ROLLCALL_MODELS_ROOT: root, ROLLCALL_MODELS_MIRROR: 'http://127.0.0.1:1' };
  const unknown = await runCli('models', ['pull', 'nonsense'], env);
  expect(unknown).toMatchObject({ code: 2, stdout: '' });
  expect(unknown.stderr).toContain('default, studio');
  expect(await runCli('models', ['pull', 'studio'], env)).toMatchObject({ code: 3, stdout: '' });
  expect((await runCli('models', [], env)).code).toBe(2);
});

it('advises a new checkout if a pack of the repository is damaged', async () => {
  const used = await runCli('models', ['use', 'default'], { ROLLCALL_MODELS_ROOT: root });
  expect(used).toEqual({
    code: 1,
    stdout: '',
    stderr: 'rollcall: default is not complete. Check out the repository again.\n',
  });
});

it.each([
  ['{', /^rollcall: \/.*models\/manifest\.json is not JSON: .*\.\n$/],
  ['{"version":1,"use":"default","packs":{}}', /^rollcall: models\/manifest\.json: use names no pack: "default"\.\n$/],
])('reports the fault of a manifest in one line: %s', async (text, message) => {
  writeFileSync(join(root, 'models', 'manifest.json'), text);
  const listed = await runCli('models', ['list'], { ROLLCALL_MODELS_ROOT: root });
  expect(listed).toMatchObject({ code: 1, stdout: '' });
  expect(listed.stderr).toMatch(message);
});
