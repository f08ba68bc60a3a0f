import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../test/helpers/local-process.ts';

it.each([
  ['confidences', '--setting', 'comunity-1'],
  ['candidates', '--settings', 'precision-2,comunity-1'],
  ['clusterings', '--settings', 'comunity-1'],
])('%s.ts refuses an unknown setting', (script, option, name) => {
  const command = ['--import', 'tsx', join(root, 'bench', `${script}.ts`), join(root, 'docs'), option, name];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' });
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/comunity-1.*precision-2, community-1/s);
});
