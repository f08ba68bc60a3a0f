import { getSystemErrorMap } from 'node:util';

/** What the system says of a call that it refused (`no space left on device`), without Node's codes; undefined for any other error. */
export function systemReason(error: unknown): string | undefined {
  const errno = error instanceof Error ? (error as NodeJS.ErrnoException).errno : undefined;
  return errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1];
}

/** `systemReason` with the name of the file that it is about, as far as there is one. */
export function describeSystemError(error: unknown): string | undefined {
  const reason = systemReason(error);
  const path = (error as NodeJS.ErrnoException | undefined)?.path;
  return reason !== undefined && path !== undefined ? `${path}: ${reason}` : reason;
}
