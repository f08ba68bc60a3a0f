import { getSystemErrorMap } from 'node:util';

/** Returns the system's message of a failed call, such as `no space left on device`; undefined for other errors. */
export function systemReason(error: unknown): string | undefined {
  const errno = error instanceof Error ? (error as NodeJS.ErrnoException).errno : undefined;
  return errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1];
}

/** Returns `systemReason` with the path of the file, if the error has one. */
export function describeSystemError(error: unknown): string | undefined {
  const reason = systemReason(error);
  const path = (error as NodeJS.ErrnoException | undefined)?.path;
  return reason !== undefined && path !== undefined ? `${path}: ${reason}` : reason;
}
