import type { Result } from '../audio/audio-ports.ts';
import { LIVE_DEFAULTS, type LiveRequest, MULAW_RATE_HZ } from '../contract/live.ts';
import type { KnownVoice } from '../live/live-session.ts';
import { decodeVoiceprint } from '../voiceprint/voiceprint.ts';
import type { LiveService } from './app-services.ts';
import type { Log } from './job-ports.ts';
import type { AudioFormat } from './live-frames.ts';
import {
  type LiveObjects,
  type LiveStore,
  type LiveTimes,
  MAX_OPEN_STREAMS,
  type StreamSetup,
  type StreamTokens,
} from './live-ports.ts';

/** `LiveService` over rows and objects of streams. */
export function createLiveService(ports: {
  readonly store: LiveStore;
  readonly objects: LiveObjects;
  readonly tokens: StreamTokens;
  readonly now: () => number;
  readonly tokenMs: number;
}): LiveService {
  return {
    async create(accountId, request, origins) {
      const id = crypto.randomUUID();
      const created = await createStream(ports, { streamId: id, accountId, request, origins }, ports.tokenMs);
      return created.ok ? { ok: true, value: { id, token: created.value.token } } : created;
    },
    async find(accountId, streamId) {
      const stream = await ports.store.find(streamId);
      return stream?.accountId === accountId ? stream : undefined;
    },
    async connect(streamId, upgrade) {
      // A forged address costs neither a query nor an object.
      if (!(await ports.tokens.verify(upgrade.kind, upgrade.token, streamId, ports.now())))
        return { ok: false, error: { kind: 'bad_stream_token' } };
      return ports.objects.connect(streamId, upgrade);
    },
  };
}

export interface NewStream {
  readonly streamId: string;
  readonly accountId: string;
  readonly request: LiveRequest;
  /** Where browsers may connect from; undefined for anywhere. */
  readonly origins?: readonly string[];
}

/**
 * Makes a stream. Its object comes before its row: an object without a row forgets itself when its token expires, while
 * a row without an object would count as open until a sweep ends it.
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
  // Where this throws the row may be there all the same: then the object, which ends it when its token expires, has to
  // stay.
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

/** What is kept of a token: it proves the token and cannot be turned back into it. */
export async function tokenDigest(token: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)));
}

/** Streams that a sweep looks at: a call of an object each, and a statement for those that are ended here. */
const BATCH_STREAMS = 200;
/** Longer than an end takes that needs several tries. */
const SLACK_MS = 10 * 60_000;
/**
 * How long a stream runs before a sweep sees to it. Whether its client is still there only its object knows: where that
 * has lost its alarm, the row would keep one of the account's places to the end of its day.
 */
const LOOK_AFTER_MS = 30 * 60_000;

/**
 * Ends what its object should have ended: an open row keeps one of the account's places, and with a deployment that is
 * broken for some minutes the platform gives up alarms. An object that knows of its stream looks after it once more,
 * and ends it where it is over; a row without one ends as an error. Safe to run at any time, also twice at once.
 *
 * @throws the first fault, when all others have been looked at
 */
export async function sweepStreams(ports: {
  readonly store: LiveStore;
  readonly objects: LiveObjects;
  readonly times: LiveTimes;
  readonly now: () => number;
  readonly log: Log;
}): Promise<void> {
  const { store, objects, times, log } = ports;
  const now = ports.now();
  const startedBefore = now - Math.min(LOOK_AFTER_MS, SLACK_MS + times.connectedMs);
  const open = await store.openSince(now - SLACK_MS - times.tokenMs, startedBefore, BATCH_STREAMS);
  const looked = await Promise.allSettled(
    open.map(async (streamId) => {
      if (await objects.wake(streamId)) return;
      const ended = await store.end(streamId, { status: 'error', receivedSeconds: 0 }, now);
      if (ended) log('warn', 'live_without_object', { streamId });
    }),
  );
  const fault = looked.find((result) => result.status === 'rejected');
  if (fault) throw fault.reason;
}
