import { execFileSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { projectDir } from '../client/local/paths.ts';

/** One line about this machine. */
export function describeMachine(): string {
  const cores = cpus();
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  const model = cores[0]?.model.trim() || 'unknown processor';
  return `${model}, ${cores.length} cores, ${memoryGiB} GiB, ${process.platform} ${process.arch}, Node ${process.version.slice(1)}`;
}

const WATCH_MS = 2000;

/** Work of others on this machine, in cores, watched for two idle seconds: times count only where it is near 0. */
export async function coresInUse(): Promise<number> {
  const before = cpuTimes();
  await new Promise((wake) => setTimeout(wake, WATCH_MS));
  const after = cpuTimes();
  const all = after.all - before.all;
  return all === 0 ? 0 : (cpus().length * (all - (after.idle - before.idle))) / all;
}

function cpuTimes(): { idle: number; all: number } {
  let idle = 0;
  let all = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, all };
}

/** The commit that is measured, of this checkout or of another one, with a remark when the tree differs from it. */
export function describeCommit(root: string = projectDir): string {
  try {
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
    // The report itself changes with every run.
    const changes = git('status', '--porcelain', '--', '.', ':!bench/RESULTS.md');
    return `${git('rev-parse', '--short=10', 'HEAD')}${changes === '' ? '' : ' with uncommitted changes'}`;
  } catch {
    return 'unknown (not a git checkout)';
  }
}
