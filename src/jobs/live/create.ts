import type { Result } from '../../audio/audio-ports.ts';
import { LIVE_DEFAULTS, type LiveRequest, MULAW_RATE_HZ } from '../../contract/live.ts';
import type { KnownVoice } from '../../live/live-session.ts';
import { decodeVoiceprint } from '../../voiceprint/voiceprint.ts';
import type { AudioFormat } from './frames.ts';
import { MAX_OPEN_STREAMS } from './limits.ts';
import type { LiveObjects, LiveStore, StreamSetup, StreamTokens } from './ports.ts';
import { tokenDigest } from './token.ts';

export interface NewStream {
  readonly streamId: string;
  readonly accountId: string;
  readonly request: LiveRequest;
  /** Where browsers may connect from; undefined for anywhere. */
  readonly origins?: readonly string[];
}

/**
 * Makes a stream. Its object comes before its row: an object without a row forgets itself when its token expires, while a row
 * without an object would count as open until a sweep ends it.
 */
export async function createStream(
  ports: {
    readonly store: LiveStore;
    readonly objects: LiveObjects;
    readonly tokens: StreamTokens;
    readonly now: () => number;
  },
  stream: NewStream,
  tokenMs: number,
): Promise<
  Result<
    { readonly token: string },
    { kind: 'too_many_streams'; maxStreams: number } | { kind: 'payment_required' } | { kind: 'overloaded' }
  >
> {
  const { streamId, accountId, request } = stream;
  const now = ports.now();
  const token = await ports.tokens.sign('connect', streamId, now + tokenMs);
  const digest = await tokenDigest(token);
  const isOpen = await ports.objects.open(setupOf(stream, digest, now + tokenMs));
  if (!isOpen) return { ok: false, error: { kind: 'overloaded' } };
  // Where this throws the row may be there all the same: then the object, which ends it when its token expires, has to stay.
  const created = await ports.store.create({ id: streamId, accountId, input: request.input, now }, MAX_OPEN_STREAMS);
  if (created === 'created') return { ok: true, value: { token } };
  // The refusal holds all the same; an object that could not be asked forgets itself.
  await ports.objects.discard(streamId).catch(() => undefined);
  if (created === 'payment_required') return { ok: false, error: { kind: 'payment_required' } };
  return { ok: false, error: { kind: 'too_many_streams', maxStreams: MAX_OPEN_STREAMS } };
}

function setupOf({ streamId, request, origins }: NewStream, digest: Uint8Array, expiresAt: number): StreamSetup {
  const { input, voiceprints } = request;
  return {
    streamId,
    tokenDigest: digest,
    expiresAt,
    isResumable: input.resume ?? LIVE_DEFAULTS.resume,
    origins,
    format: formatOf(input),
    settings: {
      latencyMs: input.latency ?? LIVE_DEFAULTS.latency,
      maxSpeakers: input.maxSpeakers ?? LIVE_DEFAULTS.maxSpeakers,
      corrections: input.corrections ?? LIVE_DEFAULTS.corrections,
      voices: voiceprints.map(knownVoice),
    },
  };
}

function formatOf({ sampleRate, encoding, envelope }: LiveRequest['input']): AudioFormat {
  if (envelope || encoding === 'mulaw')
    return { sampleRateHz: MULAW_RATE_HZ, encoding: 'mulaw', ...(envelope && { envelope }) };
  return { sampleRateHz: sampleRate ?? LIVE_DEFAULTS.sampleRate, encoding: encoding ?? LIVE_DEFAULTS.encoding };
}

function knownVoice({ label, voiceprint }: LiveRequest['voiceprints'][number]): KnownVoice {
  const decoded = decodeVoiceprint(voiceprint);
  // They were checked with the request.
  if (!decoded.ok) throw new Error(`a voiceprint that had passed is ${decoded.error.kind}`);
  return { label, voice: decoded.value };
}
