import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { D1Database } from '@cloudflare/workers-types';

/**
 * Applies the missing migrations in the order of their names. Each runs in one transaction with its entry in wrangler's
 * table, so that `wrangler d1 migrations apply` sees it as applied.
 *
 * @returns names of the migrations applied now
 */
export async function applyMigrations(db: D1Database, folder: string): Promise<string[]> {
  await db
    .prepare(
      `CREATE TABLE IF NOT EXISTS d1_migrations(
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         name TEXT UNIQUE,
         applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
       )`,
    )
    .run();
  const { results } = await db.prepare('SELECT name FROM d1_migrations').all<{ name: string }>();
  const applied = new Set(results.map(({ name }) => name));
  const missing = readdirSync(folder)
    .filter((name) => name.endsWith('.sql') && !applied.has(name))
    .sort();
  for (const name of missing) {
    const statements = splitSql(readFileSync(join(folder, name), 'utf8')).map((sql) => db.prepare(sql));
    await db.batch([...statements, db.prepare('INSERT INTO d1_migrations (name) VALUES (?)').bind(name)]);
  }
  return missing;
}

/** Comments, strings and quoted names, which are skipped; words that open or close a block; the end of a statement. */
const TOKEN = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\b(?:BEGIN|CASE|END)\b|;/gi;

/**
 * Splits a migration into its statements; drops text that is only comments. wrangler's splitter does the same, but its
 * library takes two seconds to load on the first start with a state folder.
 */
export function splitSql(text: string): string[] {
  const statements: string[] = [];
  let from = 0;
  let depth = 0;
  const add = (to: number): void => {
    const statement = text.slice(from, to).trim();
    if (statement.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '').trim() !== '') statements.push(statement);
    from = to + 1;
  };
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const word = token.toUpperCase();
    if (word === 'BEGIN' || word === 'CASE') depth++;
    else if (word === 'END') depth--;
    else if (word === ';' && depth === 0) add(index);
  }
  add(text.length);
  return statements;
}
