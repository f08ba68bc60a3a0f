import { scriptOf } from './npm-options.ts';
import { INTERRUPTED } from './run.ts';

/** Within this time a second signal is the first one again: `npm run` passes on what the terminal has sent to all of its processes already. */
const ECHO_MS = 500;
/** How often a process looks whether the `npm run` that it belongs to is still there. */
const PARENT_CHECK_MS = 1000;

/**
 * Whether SIGHUP is for somebody else: with neither output at a terminal, as `nohup` leaves them, the work is meant to outlive the terminal. What
 * `nohup` itself sets up does not last, as Node undoes it when it starts.
 */
export function outlivesTerminal(): boolean {
  return !process.stdout.isTTY && !process.stderr.isTTY;
}

/**
 * Calls back at the first Ctrl-C, SIGTERM or SIGHUP, or when `npm run` has ended above this process; a second signal, of a person who
 * does not want to wait, ends the process at once. The handlers stay: wrangler's libraries end the process themselves when they find no handler but
 * their own.
 */
export function onInterrupt(callback: () => void): void {
  let isInterrupted = false;
  let mayEndAtOnce = false;
  const interrupt = (): void => {
    if (mayEndAtOnce) process.exit(INTERRUPTED);
    if (isInterrupted) return;
    isInterrupted = true;
    // Signals that came while the process was busy are handled between its timers and `setImmediate`.
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
    if (process.ppid !== parentPid) setImmediate(endWithNpm); // behind a SIGHUP that has ended npm
  };
  setInterval(check, PARENT_CHECK_MS).unref();
}

/** `npm run` passes SIGTERM on to the shell of the script alone: one that has not made way for the script, as dash, keeps it to itself. */
function runsBelowNpm(): boolean {
  return process.platform !== 'win32' && process.env.npm_lifecycle_event === scriptOf(process.argv[2] ?? '');
}
