import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { D1Database } from '@cloudflare/workers-types';
import { splitSql } from './split-sql.ts';

/**
 * Applies the missing migrations in the order of their names, each in one transaction with its entry in wrangler's own
 * table, so that `wrangler d1 migrations apply` agrees about what is done.
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
  const done = new Set(results.map(({ name }) => name));
  const missing = readdirSync(folder)
    .filter((name) => name.endsWith('.sql') && !done.has(name))
    .sort();
  if (missing.length === 0) return [];
  for (const name of missing) {
    const statements = splitSql(readFileSync(join(folder, name), 'utf8')).map((sql) => db.prepare(sql));
    await db.batch([...statements, db.prepare('INSERT INTO d1_migrations (name) VALUES (?)').bind(name)]);
  }
  return missing;
}
