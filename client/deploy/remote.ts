import { join } from 'node:path';
import type { RunSql, SqlValue } from '../local/database.ts';
import { API } from '../workers.ts';
import { DATABASE, findDatabaseId, writeDeployConfig } from './config.ts';
import { instanceName, nameIn } from './naming.ts';
import { mustWrangler } from './wrangler.ts';

/** Opens the database of the deployed service through `wrangler d1 execute --remote`. */
export function openRemote(root: string, instance = instanceName()): { run: RunSql; close(): Promise<void> } {
  let config: Promise<string> | undefined;
  const run: RunSql = async <Row>(sql: string, ...params: SqlValue[]) => {
    config ??= remoteConfig(root, instance);
    const args = ['d1', 'execute', 'DB', '--remote', '--json', '--yes', '--config', await config];
    const output = await mustWrangler(root, [...args, '--command', inline(sql, params)]);
    const [statement] = JSON.parse(output.slice(output.indexOf('['))) as { results: Row[] }[];
    return statement.results;
  };
  return { run, close: async () => {} };
}

/** Writes a wrangler file to a separate folder, because the deployment's file contains the jurisdiction. */
async function remoteConfig(root: string, instance: string): Promise<string> {
  const database = nameIn(instance, DATABASE);
  const id = await findDatabaseId(root, database);
  if (!id) throw new Error(`There is no deployed database ${database}. Deploy first: npm run deploy`);
  const folder = join(root, '.wrangler', 'rollcall', 'remote', instance);
  return writeDeployConfig(root, API, id, { instance, folder });
}

/** Inserts the parameters into the statement as literals, because wrangler accepts no parameters. */
export function inline(sql: string, params: readonly SqlValue[]): string {
  let next = 0;
  const text = sql.replace(/\?/g, () => literal(params[next++]));
  if (next !== params.length) throw new Error('as many parameters as question marks are needed');
  return text;
}

function literal(value: SqlValue | undefined): string {
  if (value === undefined) throw new Error('as many parameters as question marks are needed');
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (value.includes('\0')) throw new Error('a text with a zero character cannot be stored');
  return `'${value.replaceAll("'", "''")}'`;
}
