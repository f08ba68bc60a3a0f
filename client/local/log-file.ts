import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs';

/** The Workers' log. */
export interface LogFile {
  write(text: string): void;
  close(): void;
}

const MAX_LOG_BYTES = 16 * 1024 * 1024;

/**
 * Opens a log for appending. A log that is too long is renamed to `PATH.1`, and a new one is started. If the file
 * cannot be written, the service continues without a log.
 *
 * @param onFailure called once, with the reason
 */
export function openLogFile(path: string, onFailure: (reason: string) => void): LogFile {
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

/** Closes without an error: a full disk may be reported only here, when the text can no longer be saved. */
function closeQuietly(file: number): void {
  try {
    closeSync(file);
  } catch {}
}

/**
 * Lines of workerd that the log omits: connections that the other end closed during a request, and the code addresses
 * after each error. Other lost connections, for example in a queue's broker, and unreachable hosts are faults.
 */
const IGNORED_LINES = [
  /^workerd\/server\/server\.c\+\+:\d+: error: Uncaught exception: .*\bdisconnected: (?!connect\(\))/,
  /^stack: /,
];

/**
 * Converts workerd's output to lines of one JSON object each: the Workers' lines unchanged, workerd's own as a message.
 *
 * @param write receives a line with its newline
 * @returns a function that takes the text of one output stream in chunks
 */
export function runtimeLines(write: (line: string) => void): (text: string) => void {
  let partialLine = '';
  return (text) => {
    const lines = (partialLine + text).split('\n');
    partialLine = lines.pop() ?? '';
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
