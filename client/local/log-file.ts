import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs';

/** Where the Worker's log goes. */
export interface LogFile {
  write(text: string): void;
  close(): void;
}

const MAX_LOG_BYTES = 16 * 1024 * 1024;

/**
 * Opens a log that is appended to; one that grows too long is begun anew, and the last one kept as `PATH.1`. A log that cannot be written (any more) is given
 * up: the service is worth more than what it says.
 *
 * @param onGivenUp is told why, once
 */
export function openLogFile(path: string, onGivenUp: (why: string) => void): LogFile {
  let file: number | undefined;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (file !== undefined) closeQuietly(file);
      file = undefined;
      onGivenUp(error instanceof Error ? error.message : String(error));
    }
  };
  let sizeBytes = 0;
  const openAnew = (): void => {
    sizeBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (sizeBytes > MAX_LOG_BYTES) {
      renameSync(path, `${path}.1`);
      sizeBytes = 0;
    }
    file = openSync(path, 'a', 0o600);
  };
  attempt(openAnew);
  return {
    write(text) {
      attempt(() => {
        if (file === undefined) return;
        sizeBytes += writeSync(file, text);
        if (sizeBytes <= MAX_LOG_BYTES) return;
        const full = file;
        file = undefined;
        closeQuietly(full);
        openAnew();
      });
    },
    close() {
      if (file !== undefined) closeQuietly(file);
      file = undefined;
    },
  };
}

/** A disk that was full may say so only now. */
function closeQuietly(file: number): void {
  try {
    closeSync(file);
  } catch {
    // Nothing that was written before can be saved.
  }
}
