import { execFileSync } from 'node:child_process';
import { cpus, loadavg, totalmem } from 'node:os';
import { projectDir } from '../client/local/paths.ts';

/** One line about this machine. */
export function describeMachine(): string {
  const cores = cpus();
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  const model = cores[0]?.model.trim() || 'unknown processor';
  return `${model}, ${cores.length} cores, ${memoryGiB} GiB, ${process.platform} ${process.arch}, Node ${process.version.slice(1)}`;
}

/** Work of others on this machine, in cores: figures of speed count only when it is near 0 before the run. */
export function loadNow(): number {
  return loadavg()[0]!;
}

/** The commit that is measured, with a remark when the tree differs from it. */
export function describeCommit(): string {
  try {
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: projectDir, encoding: 'utf8' }).trim();
    // The report itself changes with every run.
    const changes = git('status', '--porcelain', '--', '.', ':!bench/RESULTS.md');
    return `${git('rev-parse', '--short=10', 'HEAD')}${changes === '' ? '' : ' with uncommitted changes'}`;
  } catch {
    return 'unknown (not a git checkout)';
  }
}
