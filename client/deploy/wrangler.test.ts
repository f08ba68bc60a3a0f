import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../../test/helpers/local-process.ts';
import { mustWrangler } from './wrangler.ts';

const CHARACTERS = 'ë€𝄞'.repeat(50);

it("decodes characters of wrangler's output that are split over two chunks", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-wrangler-'));
  const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)';
  const command = `${numbers} SELECT i || ' ${CHARACTERS}' AS name FROM n`;
  try {
    const args = ['d1', 'execute', 'DB', '--local', '--persist-to', folder, '--json', '--command', command];
    const [{ results }] = JSON.parse(await mustWrangler(root, args)) as [{ results: { name: string }[] }];
    expect(results.filter(({ name }, at) => name !== `${at + 1} ${CHARACTERS}`)).toEqual([]);
    expect(results).toHaveLength(20000);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}, 60_000);
