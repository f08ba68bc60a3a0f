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

describe('splitSql', () => {
  it.each(texts)('splits %s into the same statements as wrangler', async (_, text) => {
    const { unstable_splitSqlQuery: reference } = await loadWrangler();
    const normalized = (statement: string) =>
      statement
        .replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '')
        .trim()
        .replace(/;$/, '')
        .replace(/\s+/g, ' ');
    expect(splitSql(text).map(normalized)).toEqual(reference(text).map(normalized));
  });
});
