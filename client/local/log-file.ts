import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs';

/** The Workers' log. */
export interface LogFile {
  write(text: string): void;
  close(): void;
}

const MAX_LOG_BYTES = 16 * 1024 * 1024;

/**
 * Opens a log for appending. A log that is too long is kept as `PATH.1`, and a new one started. If it cannot be
 * written, the service continues without a log.
 *
 * @param onFailure called once, with the reason
 */
export function openLogFile(path: string, onFailure: (why: string) => void): LogFile {
  let file: number | undefined;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (file !== undefined) closeQuietly(file);
      file = undefined;
      onFailure(error instanceof Error ? error.message : String(error));
    }
  };
  let sizeBytes = 0;
  const open = (): void => {
    sizeBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (sizeBytes > MAX_LOG_BYTES) {
      renameSync(path, `${path}.1`);
      sizeBytes = 0;
    }
    file = openSync(path, 'a', 0o600);
  };
  attempt(open);
  return {
    write(text) {
      attempt(() => {
        if (file === undefined) return;
        sizeBytes += writeSync(file, text);
        if (sizeBytes <= MAX_LOG_BYTES) return;
        const full = file;
        file = undefined;
        closeQuietly(full);
        open();
      });
    },
    close() {
      if (file !== undefined) closeQuietly(file);
      file = undefined;
    },
  };
}

/** A full disk may be reported only here, when the lost text can no longer be saved. */
function closeQuietly(file: number): void {
  try {
    closeSync(file);
  } catch {}
}

/**
 * Lines of workerd that are left out of the log: connections that the other end closed while they were served, and the
 * code addresses that follow every complaint. A lost connection elsewhere, as in a queue's broker, and a host that
 * could not be reached are faults.
 */
const IGNORED_LINES = [
  /^workerd\/server\/server\.c\+\+:\d+: error: Uncaught exception: .*\bdisconnected: (?!connect\(\))/,
  /^stack: /,
];

/**
 * Turns workerd's output into lines of one JSON object each: the Workers' lines unchanged, workerd's own as a message.
 *
 * @param write gets a line with its end
 * @returns takes the text of one output stream, in chunks
 */
export function runtimeLines(write: (line: string) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line.trim() === '' || IGNORED_LINES.some((pattern) => pattern.test(line))) continue;
      write(`${isObject(line) ? line : JSON.stringify({ level: 'warn', event: 'runtime', message: line })}\n`);
    }
  };
}

function isObject(line: string): boolean {
  if (!line.startsWith('{')) return false;
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
