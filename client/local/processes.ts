import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessInfo {
  readonly pid: number;
  readonly parentPid: number;
  /** Start time in the system's format, for comparison only: the system may reuse a pid. */
  readonly startedAt: string;
  readonly command: string;
}

/** Lists the processes that this user may see. Empty where the system has neither /proc nor ps (Windows). */
export function listProcesses(): ProcessInfo[] {
  return process.platform === 'linux' ? listFromProc() : listFromPs();
}

/** Finds the process with this pid; undefined if there is none or processes cannot be listed. */
export function findProcess(pid: number): ProcessInfo | undefined {
  return process.platform === 'linux' ? readProc(pid) : listFromPs().find((entry) => entry.pid === pid);
}

/** Whether a process with this pid runs; also works where processes cannot be listed. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function listFromProc(): ProcessInfo[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProc(Number(name)))
    .filter((entry) => entry !== undefined);
}

function readProc(pid: number): ProcessInfo | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the name in brackets and may contain spaces: count from the last bracket. Field numbers:
    // proc(5).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z') return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, parentPid: Number(fields[1]), startedAt: fields[19], command };
  } catch {
    return undefined; // the process has ended
  }
}

function listFromPs(): ProcessInfo[] {
  let table: string;
  try {
    table = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,lstart=,command='], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return [];
  }
  // lstart is five words: "Thu Nov 21 03:54:00 2025"
  const pattern = /^\s*(\d+)\s+(\d+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/;
  return table.split('\n').flatMap((line) => {
    const match = pattern.exec(line);
    return match
      ? [{ pid: Number(match[1]), parentPid: Number(match[2]), startedAt: match[3], command: match[4] }]
      : [];
  });
}
