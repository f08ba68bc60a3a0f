import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadWrangler } from './bundle.ts';
import { splitSql } from './migrations.ts';
import { projectDir } from './paths.ts';

const folder = join(projectDir, 'migrations');
const texts: [string, string][] = [
  ...readdirSync(folder).map((name): [string, string] => [name, readFileSync(join(folder, name), 'utf8')]),
  ['quotes', `INSERT INTO a VALUES ('x;''y', "b;c"); -- d;\n/* e; */ SELECT 1`],
  [
    'a trigger',
    `CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = CASE WHEN 1 THEN 2 END; SELECT 1; END; SELECT 2;`,
  ],
];

describe('splitting a migration', () => {
  it.each(texts)('%s: gives the statements that wrangler finds', async (_, text) => {
    const { unstable_splitSqlQuery: reference } = await loadWrangler();
    const bare = (statement: string) =>
      statement
        .replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '')
        .trim()
        .replace(/;$/, '')
        .replace(/\s+/g, ' ');
    expect(splitSql(text).map(bare)).toEqual(reference(text).map(bare));
  });
});
