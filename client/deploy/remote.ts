import type { RunSql, SqlValue } from '../local/database.ts';
import { API } from '../workers.ts';
import { findDatabaseId, writeDeployConfig } from './config.ts';
import { mustWrangler } from './wrangler.ts';

/** The database of the deployed service, through `wrangler d1 execute --remote`. */
export function openRemote(root: string): { run: RunSql; close(): Promise<void> } {
  let config: Promise<string> | undefined;
  const run: RunSql = async <Row>(sql: string, ...params: SqlValue[]) => {
    config ??= remoteConfig(root);
    const args = ['d1', 'execute', 'DB', '--remote', '--json', '--yes', '--config', await config];
    const printed = await mustWrangler(root, [...args, '--command', inline(sql, params)]);
    const [statement] = JSON.parse(printed.slice(printed.indexOf('['))) as { results: Row[] }[];
    return statement.results;
  };
  return { run, close: async () => {} };
}

async function remoteConfig(root: string): Promise<string> {
  const id = await findDatabaseId(root);
  if (!id) throw new Error('There is no deployed database. Deploy first: npm run deploy');
  return writeDeployConfig(root, API, id);
}

/** wrangler takes no parameters: they are written into the statement as literals. */
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
