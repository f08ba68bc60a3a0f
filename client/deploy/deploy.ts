import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Jurisdiction } from '../../src/platform/jurisdiction.ts';
import { filesToLoad, packInUse } from '../../src/platform/onnx/manifest.ts';
import { isIntact, modelKey, modelPath, readManifest, remedyFor } from '../models/store.ts';
import { API, type ServiceWorker, WORKERS } from '../workers.ts';
import { BUCKET, DATABASE, engineVariables, findDatabaseId, isKey, QUEUES, writeDeployConfig } from './config.ts';
import { takeFirstSteps } from './first-steps.ts';
import { chooseJurisdiction, inJurisdiction } from './home.ts';
import { ensureLifecycle, LIFECYCLE_RULES } from './lifecycle.ts';
import { DEFAULT_NAME, nameIn } from './naming.ts';
import { type Ask, mustAgree } from './questions.ts';
import { openRemote } from './remote.ts';
import { missingSecrets, type Secrets, withSecretsFile } from './secrets.ts';
import { knownSigningKey, moveSigningKey } from './signing-key.ts';
import { foreignResources, survey } from './survey.ts';
import { mustWrangler } from './wrangler.ts';

const PLACEHOLDER_ID = '00000000-0000-0000-0000-000000000000';

export interface Deployment {
  readonly root: string;
  readonly say: (line: string) => void;
  /** `rollcall` by default. */
  readonly instance?: string;
  /** Jurisdiction of a new instance's data; none if undefined. */
  readonly jurisdiction?: Jurisdiction;
  readonly traces?: boolean;
}

/** Bundles, runs the checks that work offline, and prints the steps of a deployment. */
export async function rehearse({
  root,
  say,
  instance = DEFAULT_NAME,
  jurisdiction,
  traces,
}: Deployment): Promise<void> {
  checkModels(root);
  const named = (resource: string): string => nameIn(instance, resource);
  const outdir = mkdtempSync(join(tmpdir(), 'rollcall-bundle-'));
  try {
    // Not in the folder of a deployment, from whose files other commands read the database's id.
    const options = { instance, jurisdiction, traces, folder: join(outdir, 'config') };
    const uploads = await Promise.all(
      WORKERS.map((worker) => {
        const config = writeDeployConfig(root, worker, PLACEHOLDER_ID, options);
        return uploadOf(root, config, join(outdir, worker.name));
      }),
    );
    for (const [index, { name }] of WORKERS.entries()) say(`worker: ${named(name)}, ${uploads[index]}`);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
  say('plan: Workers Paid, needed for minutes of CPU time and Workers of this size; R2 enabled');
  say(`database: D1 ${named(DATABASE)}, created if missing, then migrated`);
  say(`storage: R2 bucket ${named(BUCKET)}, created if missing`);
  if (jurisdiction) say(`jurisdiction: ${jurisdiction}, of database, bucket and Durable Objects`);
  for (const { prefix, days } of LIFECYCLE_RULES)
    say(`lifecycle: ${prefix} deleted after ${days} days, added if missing`);
  for (const queue of QUEUES) say(`queue: ${named(queue)}, created if missing`);
  for (const file of filesToLoad(packInUse(readManifest(root)))) say(`model: ${file.path} → ${modelKey(file)}`);
  for (const { name } of WORKERS) say(`secret: SIGNING_KEY of ${named(name)}, created if missing`);
  for (const [name, value] of engineVariables())
    say(`transcription: ${name}${isKey(name) ? ', a secret' : ` = ${value}`}`);
}

/** Bundles a Worker into a folder. @returns the size of its upload */
async function uploadOf(root: string, config: string, bundle: string): Promise<string> {
  const output = await mustWrangler(root, ['deploy', '--dry-run', '--minify', '--outdir', bundle, '--config', config]);
  const total = readdirSync(bundle)
    .filter((name) => !name.endsWith('.map') && name !== 'README.md')
    .reduce((bytes, name) => bytes + statSync(join(bundle, name)).size, 0);
  return /Total Upload:.*/.exec(output)?.[0] ?? `Total Upload: ${Math.ceil(total / 1024)} KiB`;
}

/**
 * Creates and migrates the resources that this checkout needs, and deploys the Workers. All steps can be repeated.
 *
 * @param ask called before a first deployment takes over existing resources with the same names
 */
export async function deploy(deployment: Deployment, ask: Ask): Promise<void> {
  const { root, say, instance = DEFAULT_NAME, traces } = deployment;
  moveSigningKey(root);
  checkModels(root);
  const found = await survey(root, instance);
  const jurisdiction = chooseJurisdiction(found.bucket, deployment.jurisdiction);
  const foreign = foreignResources(found, instance);
  if (foreign.length > 0) await mustAgree(ask, `The account already has ${foreign.join(', ')}. Use them?`);

  // Called before the first change, because it fails without the signing key.
  const secrets = missingSecrets(found, root, instance, say);
  const bucket = nameIn(instance, BUCKET);
  const databaseId = found.databaseId ?? (await createDatabase(deployment, nameIn(instance, DATABASE), jurisdiction));
  const configs = new Map(
    WORKERS.map((worker) => [worker, writeDeployConfig(root, worker, databaseId, { instance, jurisdiction, traces })]),
  );
  const configOf = (worker: ServiceWorker): string => configs.get(worker)!;
  if (!found.bucket) {
    say(`creating r2 bucket ${bucket}`);
    await mustWrangler(root, ['r2', 'bucket', 'create', bucket, ...inJurisdiction(jurisdiction)]);
  }
  await ensureLifecycle(root, bucket, jurisdiction, say);
  for (const queue of QUEUES.map((name) => nameIn(instance, name))) {
    if (found.queues.includes(queue)) continue;
    say(`creating queues ${queue}`);
    await mustWrangler(root, ['queues', 'create', queue]);
  }

  say('applying migrations');
  await mustWrangler(root, ['d1', 'migrations', 'apply', 'DB', '--remote', '--config', configOf(API)]);
  for (const file of filesToLoad(packInUse(readManifest(root)))) {
    say(`uploading models/${file.path}`);
    const target = [`${bucket}/${modelKey(file)}`, '--file', modelPath(root, file), '--remote'];
    await mustWrangler(root, ['r2', 'object', 'put', ...target, ...inJurisdiction(jurisdiction)]);
  }
  const output: string[] = [];
  for (const worker of WORKERS) {
    const name = nameIn(instance, worker.name);
    output.push(await deployWorker(deployment, name, configOf(worker), secrets.get(worker) ?? {}));
  }
  const address = addressIn(output.join('\n'));
  const signingKey = knownSigningKey(root, instance);
  const { run, close } = openRemote(root, instance);
  await takeFirstSteps({ root, instance, address, signingKey, run, say }).finally(close);
}

/** Deploys a Worker together with its secrets, so that it never runs without them. @returns wrangler's output */
async function deployWorker(
  { root, say }: Deployment,
  name: string,
  config: string,
  secrets: Secrets,
): Promise<string> {
  say(`deploying ${[name, ...Object.keys(secrets)].join(', with ')}`);
  const output = await withSecretsFile(secrets, (secretsFile) =>
    // Keeps the engines of an earlier deployment.
    mustWrangler(root, ['deploy', '--minify', '--keep-vars', '--config', config, ...secretsFile]),
  );
  say(output.trim());
  return output;
}

async function createDatabase(
  { root, say }: Deployment,
  database: string,
  jurisdiction: Jurisdiction | undefined,
): Promise<string> {
  say(`creating the database ${database}`);
  await mustWrangler(root, ['d1', 'create', database, ...inJurisdiction(jurisdiction)]);
  const id = await findDatabaseId(root, database);
  if (!id) throw new Error(`The database ${database} was created but is not listed.`);
  return id;
}

/** Finds the service's address in the output of `wrangler deploy`. */
export function addressIn(output: string): string | undefined {
  const domain = /^\s*(\S+) \(custom domain\b/m.exec(output)?.[1];
  return domain ? `https://${domain}` : /https:\/\/\S+\.workers\.dev\b/.exec(output)?.[0];
}

function checkModels(root: string): void {
  const pack = packInUse(readManifest(root));
  const bad = filesToLoad(pack).filter((file) => !isIntact(root, file));
  if (bad.length === 0) return;
  const names = bad.map((file) => `models/${file.path}`).join(', ');
  throw new Error(`Missing or damaged: ${names}. ${remedyFor(pack, bad)}`);
}
