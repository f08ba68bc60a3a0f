import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../test/helpers/local-process.ts';

function bench(...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const command = ['--import', 'tsx', join(root, 'bench', 'run.ts'), ...args];
  const {
    status: code,
    stdout,
    stderr,
  } = spawnSync(process.execPath, command, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, npm_lifecycle_event: 'bench' },
  });
  return { code, stdout, stderr };
}

it('shows its usage with the command that npm runs', () => {
  const { code, stdout } = bench('--help');
  expect([code, stdout.split('\n')[0]]).toEqual([0, 'Usage: npm run bench -- [options] [sections...]']);
});

it('exits with 2 for an unknown option, before it measures', () => {
  const { code, stdout, stderr } = bench('start', '--nothing');
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('--nothing');
});

it.each(['/nowhere/RESULTS.md', root, '-'])(
  'exits with 2 for a report that cannot be written, before it measures: %s',
  (output) => {
    const { code, stdout, stderr } = bench('start', '--output', output);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^rollcall: --output.*\n$/);
  },
);
