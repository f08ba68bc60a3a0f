import type { Result } from '../../audio/types.ts';
import { LIVE_DEFAULTS, type LiveRequest } from '../../contract/live.ts';
import type { KnownVoice } from '../../live/types.ts';
import { decodeVoiceprint } from '../../voiceprint/index.ts';
import { MAX_OPEN_STREAMS } from './limits.ts';
import type { LiveObjects, LiveStore, StreamSetup } from './ports.ts';
import { newToken, tokenDigest } from './token.ts';

export interface NewStream {
  readonly streamId: string;
  readonly accountId: string;
  readonly request: LiveRequest;
}

/**
 * Makes a stream. Its object comes before its row: an object without a row forgets itself when its token expires, while a row
 * without an object would count as open until a sweep ends it.
 */
export async function createStream(
  ports: { readonly store: LiveStore; readonly objects: LiveObjects; readonly now: () => number },
  { streamId, accountId, request }: NewStream,
  tokenMs: number,
): Promise<
  Result<{ readonly token: string }, { kind: 'too_many_streams'; maxStreams: number } | { kind: 'payment_required' }>
> {
  const now = ports.now();
  const token = newToken();
  const digest = await tokenDigest(token);
  await ports.objects.open(setupOf(streamId, request, digest, now + tokenMs));
  // Where this throws the row may be there all the same: then the object, which ends it when its token expires, has to stay.
  const created = await ports.store.create({ id: streamId, accountId, input: request.input, now }, MAX_OPEN_STREAMS);
  if (created === 'created') return { ok: true, value: { token } };
  // The refusal holds all the same; an object that could not be asked forgets itself.
  await ports.objects.discard(streamId).catch(() => undefined);
  if (created === 'payment_required') return { ok: false, error: { kind: 'payment_required' } };
  return { ok: false, error: { kind: 'too_many_streams', maxStreams: MAX_OPEN_STREAMS } };
}

function setupOf(
  streamId: string,
  { input, voiceprints }: LiveRequest,
  digest: Uint8Array,
  expiresAt: number,
): StreamSetup {
  return {
    streamId,
    tokenDigest: digest,
    expiresAt,
    format: {
      sampleRateHz: input.sampleRate ?? LIVE_DEFAULTS.sampleRate,
      encoding: input.encoding ?? LIVE_DEFAULTS.encoding,
    },
    settings: {
      latencyMs: input.latency ?? LIVE_DEFAULTS.latency,
      maxSpeakers: input.maxSpeakers ?? LIVE_DEFAULTS.maxSpeakers,
      corrections: input.corrections ?? LIVE_DEFAULTS.corrections,
      voices: voiceprints.map(knownVoice),
    },
  };
}

function knownVoice({ label, voiceprint }: LiveRequest['voiceprints'][number]): KnownVoice {
  const decoded = decodeVoiceprint(voiceprint);
  // They were checked with the request.
  if (!decoded.ok) throw new Error(`a voiceprint that had passed is ${decoded.error.kind}`);
  return { label, voice: decoded.value };
}
