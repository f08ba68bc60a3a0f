import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../test/helpers/local-process.ts';

it('refuses parameters that change the analysis of any setting', () => {
  const tuning = 'step={"windows":{"stepSamples":16000}}';
  const command = ['--import', 'tsx', join(root, 'bench', 'clusterings.ts'), join(root, 'docs'), '--tune', tuning];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' });
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toContain('step changes the analysis');
});
