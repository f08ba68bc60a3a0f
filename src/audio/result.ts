import type { AudioError, Result } from './types.ts';

export const ok = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });

/** An audio failure; `message` is one sentence for the person who sent the recording. */
export const fail = (
  kind: AudioError['kind'],
  message: string,
): { readonly ok: false; readonly error: AudioError } => ({
  ok: false,
  error: { kind, message },
});

export type AudioResult<T> = Result<T, AudioError>;
