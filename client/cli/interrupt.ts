import { scriptOf } from './npm-options.ts';
import { INTERRUPTED } from './run.ts';

/**
 * A second signal within this time counts as the same one: `npm run` repeats the signal that the terminal sent to all
 * processes.
 */
const ECHO_MS = 500;
/** Interval of the checks that the parent `npm run` still runs. */
const PARENT_CHECK_MS = 1000;

/**
 * Whether to ignore SIGHUP: neither output is a terminal, as with `nohup`. `nohup` itself makes the process ignore
 * SIGHUP, but Node undoes that at its start.
 */
export function outlivesTerminal(): boolean {
  return !process.stdout.isTTY && !process.stderr.isTTY;
}

/**
 * Calls back at the first Ctrl-C, SIGTERM or SIGHUP, or when the parent `npm run` has ended. A second signal ends the
 * process at once. The handlers stay, because wrangler's libraries end the process if they find no other handler.
 */
export function onInterrupt(callback: () => void): void {
  let isInterrupted = false;
  let mayEndAtOnce = false;
  const interrupt = (): void => {
    if (mayEndAtOnce) process.exit(INTERRUPTED);
    if (isInterrupted) return;
    isInterrupted = true;
    // Node handles signals that arrived while the process was busy after the timers and before `setImmediate`.
    const allowEnd = (): void => void setImmediate(() => (mayEndAtOnce = true));
    setTimeout(allowEnd, ECHO_MS).unref();
    callback();
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);

  let belongsToNpm = runsBelowNpm();
  const hangUp = (): void => {
    if (!outlivesTerminal()) interrupt();
    belongsToNpm = false; // npm ends with the terminal
  };
  process.on('SIGHUP', hangUp);
  if (!belongsToNpm) return;
  const parentPid = process.ppid;
  const endWithNpm = (): void => {
    if (belongsToNpm && !isInterrupted) interrupt();
  };
  const check = (): void => {
    if (process.ppid !== parentPid) setImmediate(endWithNpm); // after a SIGHUP that ended npm
  };
  setInterval(check, PARENT_CHECK_MS).unref();
}

/** `npm run` passes SIGTERM to the script's shell only; a shell that still runs, such as dash, does not pass it on. */
function runsBelowNpm(): boolean {
  return process.platform !== 'win32' && process.env.npm_lifecycle_event === scriptOf(process.argv[2] ?? '');
}
