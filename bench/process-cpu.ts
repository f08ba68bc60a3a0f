import { readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** CPU time of a process so far, milliseconds, all threads; undefined where the system has no /proc. */
export function processCpuMs(pid: number | undefined): number | undefined {
  if (pid === undefined) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in brackets, may hold spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (1000 * (Number(fields[11]) + Number(fields[12]))) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}
