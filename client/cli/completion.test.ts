import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../test/helpers/local-process.ts';

function has(shell: string): boolean {
  try {
    execFileSync(shell, ['-c', 'exit 0']);
    return true;
  } catch {
    return false;
  }
}

describe('rollcall completion', () => {
  let bash: string;
  beforeAll(async () => {
    bash = (await runCli('completion', ['bash'])).stdout;
  });

  it.skipIf(!has('bash')).each([
    [['rollcall', 'dia'], 'diarize'],
    [['rollcall', 'diarize', '--num'], '--num-speakers'],
    [['rollcall', 'jobs', 'del'], 'delete'],
    [['rollcall', 'jobs', 'list', '--st'], '--status'],
    [['rollcall', 'diarize', 'meet'], ''],
    [['rollcall', 'kept'], ''],
  ])('completes %j to %j in bash', (words, expected) => {
    const input = `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}`;
    const script = `${bash}\n${input}; _rollcall; echo "$COMPREPLY"`;
    expect(execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim()).toBe(expected);
  });

  it.each(['zsh', 'fish'])('prints a script that %s can read', async (shell) => {
    const { stdout } = await runCli('completion', [shell]);
    expect(stdout).toContain('diarize');
    expect(stdout).toContain('num-speakers');
    if (has(shell)) execFileSync(shell, ['-n'], { input: stdout });
  });

  it('refuses an unknown shell', async () => {
    expect(await runCli('completion', ['tcsh'])).toMatchObject({ code: 2, stdout: '' });
  });
});
