import type { LiveClose, LiveEvent } from './types.ts';

/** Messages about the connection: the token to resume the stream with, and the frame from which it is resumed. */
export type ControlMessage =
  | { readonly kind: 'resume'; readonly token: string; readonly frame: number }
  | { readonly kind: 'resumed'; readonly frame: number };

/** The longest correction has about 45,000 characters. */
const MAX_MESSAGE_LENGTH = 65_536;

/**
 * Parses a message of the service.
 *
 * @returns an error event for an invalid message; undefined for an unknown type, which a newer service may send
 */
export function parseMessage(data: unknown): LiveEvent | ControlMessage | undefined {
  const invalid: LiveEvent = { kind: 'error', message: 'The service sent an invalid message.' };
  if (typeof data !== 'string' || data.length > MAX_MESSAGE_LENGTH) return invalid;
  let message: Record<string, unknown>;
  try {
    message = JSON.parse(data) as Record<string, unknown>;
  } catch {
    return invalid;
  }
  switch (message?.type) {
    case 'diarization_speaker_start':
      return turnEvent('start', message.data) ?? invalid;
    case 'diarization_speaker_end':
      return turnEvent('end', message.data) ?? invalid;
    case 'diarization_speaker_correction':
      return correctionEvent(message.data) ?? invalid;
    case 'resume':
    case 'resumed':
      return controlMessage(message) ?? invalid;
    case 'error':
      return typeof message.message === 'string' ? { kind: 'error', message: message.message } : invalid;
    default:
      return typeof message?.type === 'string' ? undefined : invalid;
  }
}

function turnEvent(kind: 'start' | 'end', data: unknown): LiveEvent | undefined {
  const { timestamp, speaker, match } = (data ?? {}) as Record<string, unknown>;
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp) || typeof speaker !== 'string') return undefined;
  if (kind === 'end') return { kind, speaker, timestampSeconds: timestamp };
  const known = typeof match === 'string' || match === null ? { match } : {};
  return { kind, speaker, timestampSeconds: timestamp, ...known };
}

function controlMessage({ type, token, frame }: Record<string, unknown>): ControlMessage | undefined {
  if (!Number.isInteger(frame)) return undefined;
  if (type === 'resumed') return { kind: type, frame: frame as number };
  return typeof token === 'string' ? { kind: 'resume', token, frame: frame as number } : undefined;
}

function correctionEvent(data: unknown): LiveEvent | undefined {
  const { changes } = (data ?? {}) as Record<string, unknown>;
  if (!Array.isArray(changes)) return undefined;
  const parsed = changes.map((change: unknown) => {
    const { start, end, from, to } = (change ?? {}) as Record<string, unknown>;
    const isSpan = typeof start === 'number' && typeof end === 'number' && Number.isFinite(start) && end > start;
    return isSpan && typeof from === 'string' && typeof to === 'string'
      ? { startSeconds: start, endSeconds: end, from, to }
      : undefined;
  });
  return parsed.every((change) => change !== undefined) ? { kind: 'correction', changes: parsed } : undefined;
}

/**
 * The meaning of a close code.
 *
 * @param ended whether the end of the stream had been sent
 * @param lastError the last error message, which is more specific than the code
 */
export function closeOf(code: number, reason: string, ended: boolean, lastError: string | undefined): LiveClose {
  const detail = reason || lastError;
  switch (code) {
    case 1000:
      return ended
        ? { kind: 'done' }
        : { kind: 'length_limit', message: detail ?? 'The stream has reached its longest length.' };
    case 1008:
      return { kind: 'policy', message: detail ?? 'The service ended the stream.' };
    case 1009:
      return { kind: 'too_large', message: detail ?? 'A frame was too large.' };
    case 1011:
      return { kind: 'service_failed', message: detail ?? 'The service has failed.' };
    default:
      return { kind: 'lost', code, message: detail ?? `The connection was lost (code ${code}).` };
  }
}
