import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filesToLoad, packInUse } from '../../src/platform/onnx/manifest.ts';
import { isIntact, modelKey, modelPath, readManifest, remedyFor } from '../models/store.ts';
import { BUCKET, DATABASE, engineVariables, findDatabaseId, isKey, QUEUES, writeDeployConfig } from './config.ts';
import { ensureLifecycle, LIFECYCLE_RULES } from './lifecycle.ts';
import { keepSigningKey, moveSigningKey } from './signing-key.ts';
import { mustWrangler, wrangler } from './wrangler.ts';

const PLACEHOLDER_ID = '00000000-0000-0000-0000-000000000000';

export interface Deployment {
  readonly root: string;
  readonly say: (line: string) => void;
}

/** Bundles and checks everything that can be checked offline, and says what a deployment would do. */
export async function rehearse({ root, say }: Deployment): Promise<void> {
  checkModels(root);
  const outdir = mkdtempSync(join(tmpdir(), 'rollcall-bundle-'));
  try {
    // Not where a deployment leaves its own: other commands read the database's id there.
    const config = writeDeployConfig(root, PLACEHOLDER_ID, join(outdir, 'config'));
    const printed = await mustWrangler(root, [
      'deploy',
      '--dry-run',
      '--minify',
      '--outdir',
      join(outdir, 'worker'),
      '--config',
      config,
    ]);
    const total = readdirSync(join(outdir, 'worker'))
      .filter((name) => !name.endsWith('.map') && name !== 'README.md')
      .reduce((bytes, name) => bytes + statSync(join(outdir, 'worker', name)).size, 0);
    const upload = /Total Upload:.*/.exec(printed)?.[0] ?? `Total Upload: ${Math.ceil(total / 1024)} KiB`;
    say(`worker: ${upload}`);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
  say('plan: Workers Paid, for minutes of CPU time and a Worker of this size; R2 switched on');
  say(`database: D1 ${DATABASE}, created if missing, then migrated`);
  say(`storage: R2 bucket ${BUCKET}, created if missing`);
  for (const { prefix, days } of LIFECYCLE_RULES)
    say(`lifecycle: ${prefix} deleted after ${days} days, added if missing`);
  for (const queue of QUEUES) say(`queue: ${queue}, created if missing`);
  for (const file of filesToLoad(packInUse(readManifest(root)))) say(`model: ${file.path} → ${modelKey(file)}`);
  say('secret: SIGNING_KEY, made if missing');
  for (const [name, value] of engineVariables())
    say(`transcription: ${name}${isKey(name) ? ', a secret' : ` = ${value}`}`);
}

/** Brings the account up to what this checkout needs and deploys the Worker. Each step may run again. */
export async function deploy({ root, say }: Deployment): Promise<void> {
  moveSigningKey(root);
  checkModels(root);
  let databaseId = await findDatabaseId(root);
  if (!databaseId) {
    say(`creating the database ${DATABASE}`);
    await mustWrangler(root, ['d1', 'create', DATABASE]);
    databaseId = await findDatabaseId(root);
    if (!databaseId) throw new Error(`The database ${DATABASE} was created but is not listed.`);
  }
  const config = writeDeployConfig(root, databaseId);
  await ensure(root, say, ['r2', 'bucket'], BUCKET);
  await ensureLifecycle(root, say);
  for (const queue of QUEUES) await ensure(root, say, ['queues'], queue);

  say('applying migrations');
  await mustWrangler(root, ['d1', 'migrations', 'apply', 'DB', '--remote', '--config', config]);
  for (const file of filesToLoad(packInUse(readManifest(root)))) {
    say(`uploading models/${file.path}`);
    const target = `${BUCKET}/${modelKey(file)}`;
    await mustWrangler(root, ['r2', 'object', 'put', target, '--file', modelPath(root, file), '--remote']);
  }
  say('deploying the Worker');
  // Engines of an earlier deployment stay.
  say((await mustWrangler(root, ['deploy', '--minify', '--keep-vars', '--config', config])).trim());
  await ensureSigningKey(root, config, say);
  for (const [name, value] of engineVariables().filter(([name]) => isKey(name))) {
    say(`storing the secret ${name}`);
    await mustWrangler(root, ['secret', 'put', name, '--config', config], value);
  }
}

async function ensure(root: string, say: Deployment['say'], kind: readonly string[], name: string): Promise<void> {
  const { code } = await wrangler(root, [...kind, 'info', name]);
  if (code === 0) return;
  say(`creating ${kind.join(' ')} ${name}`);
  await mustWrangler(root, [...kind, 'create', name]);
}

/** A secret cannot be read back: a copy is kept for `npm run key -- --remote`. */
async function ensureSigningKey(root: string, config: string, say: Deployment['say']): Promise<void> {
  const listed = await mustWrangler(root, ['secret', 'list', '--format', 'json', '--config', config]);
  const secrets = JSON.parse(listed.slice(listed.indexOf('['))) as { name: string }[];
  if (secrets.some(({ name }) => name === 'SIGNING_KEY')) return;
  const secret = randomBytes(32).toString('base64');
  const path = keepSigningKey(root, secret);
  await mustWrangler(root, ['secret', 'put', 'SIGNING_KEY', '--config', config], secret);
  say(`SIGNING_KEY made; a copy is in ${path}. Keep it safe: every API key is signed with it.`);
}

function checkModels(root: string): void {
  const pack = packInUse(readManifest(root));
  const bad = filesToLoad(pack).filter((file) => !isIntact(root, file));
  if (bad.length === 0) return;
  const names = bad.map((file) => `models/${file.path}`).join(', ');
  throw new Error(`Missing or damaged: ${names}. ${remedyFor(pack, bad)}`);
}
