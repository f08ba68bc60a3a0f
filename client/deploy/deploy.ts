import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { filesToLoad, packInUse } from '../../src/platform/onnx/manifest.ts';
import { isIntact, modelKey, modelPath, readManifest, remedyFor } from '../models/store.ts';
import { API, type ServiceWorker, WORKERS } from '../workers.ts';
import { BUCKET, DATABASE, engineVariables, findDatabaseId, isKey, QUEUES, writeDeployConfig } from './config.ts';
import { ensureLifecycle, LIFECYCLE_RULES } from './lifecycle.ts';
import { missingSecrets, type Secrets } from './secrets.ts';
import { moveSigningKey } from './signing-key.ts';
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
    const uploads = await Promise.all(WORKERS.map((worker) => uploadOf(root, worker, outdir)));
    for (const [index, { name }] of WORKERS.entries()) say(`worker: ${name}, ${uploads[index]}`);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
  say('plan: Workers Paid, for minutes of CPU time and Workers of this size; R2 switched on');
  say(`database: D1 ${DATABASE}, created if missing, then migrated`);
  say(`storage: R2 bucket ${BUCKET}, created if missing`);
  for (const { prefix, days } of LIFECYCLE_RULES)
    say(`lifecycle: ${prefix} deleted after ${days} days, added if missing`);
  for (const queue of QUEUES) say(`queue: ${queue}, created if missing`);
  for (const file of filesToLoad(packInUse(readManifest(root)))) say(`model: ${file.path} → ${modelKey(file)}`);
  for (const { name, signs } of WORKERS) if (signs) say(`secret: SIGNING_KEY of ${name}, made if missing`);
  for (const [name, value] of engineVariables())
    say(`transcription: ${name}${isKey(name) ? ', a secret' : ` = ${value}`}`);
}

/** Bundles a Worker. @returns how large its upload is */
async function uploadOf(root: string, worker: ServiceWorker, outdir: string): Promise<string> {
  // Not where a deployment leaves its own: other commands read the database's id there.
  const config = writeDeployConfig(root, worker, PLACEHOLDER_ID, join(outdir, 'config'));
  const bundle = join(outdir, worker.name);
  const printed = await mustWrangler(root, ['deploy', '--dry-run', '--minify', '--outdir', bundle, '--config', config]);
  const total = readdirSync(bundle)
    .filter((name) => !name.endsWith('.map') && name !== 'README.md')
    .reduce((bytes, name) => bytes + statSync(join(bundle, name)).size, 0);
  return /Total Upload:.*/.exec(printed)?.[0] ?? `Total Upload: ${Math.ceil(total / 1024)} KiB`;
}

/** Brings the account up to what this checkout needs and deploys the Workers. Each step may run again. */
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
  const id = databaseId;
  const configs = new Map(WORKERS.map((worker) => [worker, writeDeployConfig(root, worker, id)]));
  const configOf = (worker: ServiceWorker): string => configs.get(worker)!;
  // Looked for first: without it nothing must change.
  const secrets = await missingSecrets(root, configOf, say);
  await ensure(root, say, ['r2', 'bucket'], BUCKET);
  await ensureLifecycle(root, say);
  for (const queue of QUEUES) await ensure(root, say, ['queues'], queue);

  say('applying migrations');
  await mustWrangler(root, ['d1', 'migrations', 'apply', 'DB', '--remote', '--config', configOf(API)]);
  for (const file of filesToLoad(packInUse(readManifest(root)))) {
    say(`uploading models/${file.path}`);
    const target = `${BUCKET}/${modelKey(file)}`;
    await mustWrangler(root, ['r2', 'object', 'put', target, '--file', modelPath(root, file), '--remote']);
  }
  for (const worker of WORKERS) {
    say(`deploying ${worker.name}`);
    say(await deployWorker(root, configOf(worker), secrets.get(worker) ?? {}));
  }
}

/** Deploys a Worker together with secrets: it never runs without them. @returns what wrangler says */
async function deployWorker(root: string, config: string, secrets: Secrets): Promise<string> {
  // Engines of an earlier deployment stay.
  const args = ['deploy', '--minify', '--keep-vars', '--config', config];
  if (Object.keys(secrets).length === 0) return (await mustWrangler(root, args)).trim();
  const file = join(dirname(config), 'secrets.json');
  try {
    writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 });
    return (await mustWrangler(root, [...args, '--secrets-file', file])).trim();
  } finally {
    rmSync(file, { force: true });
  }
}

async function ensure(root: string, say: Deployment['say'], kind: readonly string[], name: string): Promise<void> {
  const { code } = await wrangler(root, [...kind, 'info', name]);
  if (code === 0) return;
  say(`creating ${kind.join(' ')} ${name}`);
  await mustWrangler(root, [...kind, 'create', name]);
}

function checkModels(root: string): void {
  const pack = packInUse(readManifest(root));
  const bad = filesToLoad(pack).filter((file) => !isIntact(root, file));
  if (bad.length === 0) return;
  const names = bad.map((file) => `models/${file.path}`).join(', ');
  throw new Error(`Missing or damaged: ${names}. ${remedyFor(pack, bad)}`);
}
