import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { optionsKeptByNpm } from './npm-options.ts';

const command = new Command('deploy')
  .option('--dry-run', '')
  .option('--no-corrections', '')
  .option('--num-speakers <n>', '')
  .option('--force', '');
command.command('usage').option('--from <time>', '');
const byNpm = (env: Record<string, string>) => ({ npm_lifecycle_event: 'deploy', ...env });

describe('optionsKeptByNpm', () => {
  it('finds options that npm took as its own', () => {
    const env = byNpm({ npm_config_dry_run: 'true', npm_config_corrections: '', npm_config_num_speakers: 'true' });
    expect(optionsKeptByNpm(command, ['4'], env)).toEqual(['--dry-run', '--no-corrections', '--num-speakers']);
    expect(optionsKeptByNpm(command, ['usage'], byNpm({ npm_config_from: 'true' }))).toEqual(['--from']);
  });

  it.each([
    ['npm took none', ['--dry-run'], byNpm({})],
    ['the command also received them', ['--dry-run'], byNpm({ npm_config_dry_run: 'true' })],
    ['the command also received them with a value', ['--num-speakers=4'], byNpm({ npm_config_num_speakers: 'true' })],
    ["they may be set in npm's configuration", [], byNpm({ npm_config_force: 'true' })],
    ['npm runs another script', [], { npm_lifecycle_event: 'test', npm_config_dry_run: 'true' }],
    ['npm does not run the command', [], { npm_config_dry_run: 'true' }],
  ])('reports nothing if %s', (_, given, env) => {
    expect(optionsKeptByNpm(command, given, env)).toEqual([]);
  });
});
