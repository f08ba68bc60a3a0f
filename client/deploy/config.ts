import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Jurisdiction } from '../../src/platform/jurisdiction.ts';
import { makePrivateDir } from '../local/paths.ts';
import { API, type ServiceWorker } from '../workers.ts';
import { placeConfig } from './home.ts';
import { DEFAULT_NAME, renameConfig } from './naming.ts';
import { mustWrangler } from './wrangler.ts';

/** Resources in the wrangler files, which a deployment creates. `nameIn` returns their names in another instance. */
export const DATABASE = 'rollcall';
export const BUCKET = 'rollcall';
export const QUEUES = [
  'rollcall-ingest',
  'rollcall-jobs',
  'rollcall-priority',
  'rollcall-transcripts',
  'rollcall-webhooks',
  'rollcall-dead',
] as const;

/**
 * Writes a copy of a Worker's wrangler file for a deployment, with the id of the account's database, Workers AI, and
 * the transcription engines of the environment. The file in the repository keeps its placeholder, because local state
 * is stored under it.
 *
 * @param options.folder folder of the copy; `.wrangler/rollcall/deploy` by default
 * @returns path of the copy
 */
export function writeDeployConfig(
  root: string,
  worker: ServiceWorker,
  databaseId: string,
  options: ConfigOptions = {},
): string {
  const { instance = DEFAULT_NAME, folder = deployDir(root, instance) } = options;
  let text = placeConfig(renameConfig(readFileSync(join(root, worker.config), 'utf8'), instance), options.jurisdiction);
  if (options.traces) text = text.replace(TRACES_OFF, '$1true');
  const replaceValue = (name: string, value: (oldValue: string) => string): void => {
    const pattern = new RegExp(`^${name} = "([^"]*)"$`, 'gm');
    if (text.match(pattern)?.length !== 1) throw new Error(`${worker.config} must have one line ${name} = "…"`);
    text = text.replace(pattern, (_, oldValue: string) => `${name} = ${JSON.stringify(value(oldValue))}`);
  };
  replaceValue('main', (path) => resolve(root, path));
  if (worker === API) {
    for (const name of ['migrations_dir', '"ajv"', '"ajv-formats"']) replaceValue(name, (path) => resolve(root, path));
  }
  replaceValue('database_id', () => databaseId);
  if (worker.transcribes) {
    const variables = engineVariables().filter(([name]) => !isKey(name));
    replaceValue('OUTPUT_TTL_SECONDS', (seconds) => seconds);
    text = text.replace(/^OUTPUT_TTL_SECONDS = .*$/m, (line) =>
      [line, ...variables.map(([name, value]) => `${name} = ${JSON.stringify(value)}`)].join('\n'),
    );
    // The local runtime has no Workers AI.
    text += '\n[ai]\nbinding = "AI"\n';
  }
  makePrivateDir(folder);
  const path = join(folder, worker.config);
  writeFileSync(path, text);
  return path;
}

export interface ConfigOptions {
  readonly instance?: string;
  readonly jurisdiction?: Jurisdiction;
  readonly folder?: string;
  /** Switches the platform's traces on. */
  readonly traces?: boolean;
}

const TRACES_OFF = /^(\[observability\.traces\]\nenabled = )false$/m;

/** Variables of the transcription engines. An empty value removes the value of an earlier deployment. */
export const engineVariables = (): [name: string, value: string][] =>
  Object.entries(process.env)
    .filter(([name]) => name.startsWith('ROLLCALL_ASR_'))
    .map(([name, value]) => [name, value ?? '']);

/** Whether the variable is a secret. */
export const isKey = (name: string): boolean => name.startsWith('ROLLCALL_ASR_KEY');

const deployDir = (root: string, instance: string): string =>
  join(root, '.wrangler', 'rollcall', 'deploy', ...(instance === DEFAULT_NAME ? [] : [instance]));

/** Finds the id of the account's database; undefined if there is none. */
export async function findDatabaseId(root: string, database: string): Promise<string | undefined> {
  const databases = JSON.parse(await mustWrangler(root, ['d1', 'list', '--json'])) as { name: string; uuid: string }[];
  return databases.find(({ name }) => name === database)?.uuid;
}
