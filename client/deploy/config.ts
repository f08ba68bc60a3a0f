import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makePrivateDir } from '../local/paths.ts';
import { mustWrangler } from './wrangler.ts';

/** Names of wrangler.toml that the deployment creates. */
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
 * Writes a copy of wrangler.toml for the account that is deployed to: with the id of its database, which only the
 * account knows, Workers AI, and the transcription engines of the environment. The file in the repository keeps its
 * placeholder, so that local state stays where it is.
 *
 * @param folder where it is written, `.wrangler/rollcall/deploy` if nothing else is said
 * @returns path of the copy
 */
export function writeDeployConfig(root: string, databaseId: string, folder = deployDir(root)): string {
  let text = readFileSync(join(root, 'wrangler.toml'), 'utf8');
  const put = (name: string, value: (old: string) => string): void => {
    const pattern = new RegExp(`^${name} = "([^"]*)"$`, 'gm');
    if (text.match(pattern)?.length !== 1) throw new Error(`wrangler.toml must have one line ${name} = "…"`);
    text = text.replace(pattern, (_, old: string) => `${name} = ${JSON.stringify(value(old))}`);
  };
  put('main', (path) => resolve(root, path));
  put('migrations_dir', (path) => resolve(root, path));
  put('database_id', () => databaseId);
  const variables = engineVariables().filter(([name]) => !isKey(name));
  put('OUTPUT_TTL_SECONDS', (seconds) => seconds);
  text = text.replace(/^OUTPUT_TTL_SECONDS = .*$/m, (line) =>
    [line, ...variables.map(([name, value]) => `${name} = ${JSON.stringify(value)}`)].join('\n'),
  );
  // Only here: the local runtime has no Workers AI.
  text += '\n[ai]\nbinding = "AI"\n';
  makePrivateDir(folder);
  const path = join(folder, 'wrangler.toml');
  writeFileSync(path, text);
  return path;
}

/** Variables of the transcription engines. An empty value removes what an earlier deployment has set. */
export const engineVariables = (): [name: string, value: string][] =>
  Object.entries(process.env)
    .filter(([name]) => name.startsWith('ROLLCALL_ASR_'))
    .map(([name, value]) => [name, value ?? '']);

/** Whether the variable is stored as a secret. */
export const isKey = (name: string): boolean => name.startsWith('ROLLCALL_ASR_KEY');

const deployDir = (root: string): string => join(root, '.wrangler', 'rollcall', 'deploy');

/** Id of the database on the account, undefined when there is none yet. */
export async function findDatabaseId(root: string): Promise<string | undefined> {
  const databases = JSON.parse(await mustWrangler(root, ['d1', 'list', '--json'])) as { name: string; uuid: string }[];
  return databases.find(({ name }) => name === DATABASE)?.uuid;
}
