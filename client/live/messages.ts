import type { LiveClose, LiveEvent } from './types.ts';

/** What the service says of the connection: how the stream can be resumed, and from which frame on it is. */
export type ControlMessage =
  | { readonly kind: 'resume'; readonly token: string; readonly frame: number }
  | { readonly kind: 'resumed'; readonly frame: number };

/** Longest message that is read; a correction of all that the service keeps has some 45,000 characters. */
const MAX_MESSAGE_LENGTH = 65_536;

/**
 * Reads a message of the service.
 *
 * @returns undefined for a type that this client does not know: a newer service may tell more
 */
export function parseMessage(data: unknown): LiveEvent | ControlMessage | undefined {
  const strange: LiveEvent = { kind: 'error', message: 'The service sent a message that is not understood.' };
  if (typeof data !== 'string' || data.length > MAX_MESSAGE_LENGTH) return strange;
  let message: Record<string, unknown>;
  try {
    message = JSON.parse(data) as Record<string, unknown>;
  } catch {
    return strange;
  }
  switch (message?.type) {
    case 'diarization_speaker_start':
      return turnEvent('start', message.data) ?? strange;
    case 'diarization_speaker_end':
      return turnEvent('end', message.data) ?? strange;
    case 'diarization_speaker_correction':
      return correctionEvent(message.data) ?? strange;
    case 'resume':
    case 'resumed':
      return controlMessage(message) ?? strange;
    case 'error':
      return typeof message.message === 'string' ? { kind: 'error', message: message.message } : strange;
    default:
      return typeof message?.type === 'string' ? undefined : strange;
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
  const read = changes.map((change: unknown) => {
    const { start, end, from, to } = (change ?? {}) as Record<string, unknown>;
    const isSpan = typeof start === 'number' && typeof end === 'number' && Number.isFinite(start) && end > start;
    return isSpan && typeof from === 'string' && typeof to === 'string'
      ? { startSeconds: start, endSeconds: end, from, to }
      : undefined;
  });
  return read.every((change) => change !== undefined) ? { kind: 'correction', changes: read } : undefined;
}

/**
 * What a close code means (contract §9).
 *
 * @param ended whether the end of the stream had been sent
 * @param lastError the last error message that came before, which says more than the code
 */
export function closeOf(code: number, reason: string, ended: boolean, lastError: string | undefined): LiveClose {
  const said = reason || lastError;
  switch (code) {
    case 1000:
      return ended
        ? { kind: 'done' }
        : { kind: 'length_limit', message: said ?? 'The stream is as long as it may be.' };
    case 1008:
      return { kind: 'policy', message: said ?? 'The service refused to go on.' };
    case 1009:
      return { kind: 'too_large', message: said ?? 'A frame was too large.' };
    case 1011:
      return { kind: 'service_failed', message: said ?? 'The service has failed.' };
    default:
      return { kind: 'lost', code, message: said ?? `The connection was lost (code ${code}).` };
  }
}
