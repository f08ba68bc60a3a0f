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

describe('options that npm run keeps for itself', () => {
  it('are found: npm run deploy --dry-run would deploy', () => {
    const env = byNpm({ npm_config_dry_run: 'true', npm_config_corrections: '', npm_config_num_speakers: 'true' });
    expect(optionsKeptByNpm(command, ['4'], env)).toEqual(['--dry-run', '--no-corrections', '--num-speakers']);
    expect(optionsKeptByNpm(command, ['usage'], byNpm({ npm_config_from: 'true' }))).toEqual(['--from']);
  });

  it.each([
    ['none is kept', ['--dry-run'], byNpm({})],
    ['it has reached the command, too', ['--dry-run'], byNpm({ npm_config_dry_run: 'true' })],
    ['it has reached the command with its value', ['--num-speakers=4'], byNpm({ npm_config_num_speakers: 'true' })],
    ['a person may have it set for npm', [], byNpm({ npm_config_force: 'true' })],
    ['npm runs another script', [], { npm_lifecycle_event: 'test', npm_config_dry_run: 'true' }],
    ['npm has no part in it', [], { npm_config_dry_run: 'true' }],
  ])('are not told where %s', (_, given, env) => {
    expect(optionsKeptByNpm(command, given, env)).toEqual([]);
  });
});
