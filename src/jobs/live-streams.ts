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
      // Check the signature first: a forged token then costs neither a query nor an object.
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
  /** Origins from which browsers may connect; undefined for any. */
  readonly origins?: readonly string[];
}

/**
 * Creates a stream, its object before its row: an object without a row deletes itself when its token expires, but a row
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
  // If this throws, the row may still have been written: the object must stay, to end it when the token expires.
  const created = await ports.store.create({ id: streamId, accountId, input: request.input, now }, MAX_OPEN_STREAMS);
  if (created === 'created') return { ok: true, value: { token } };
  // If the call fails, the object deletes itself when its token expires.
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
  // The voiceprints were checked with the request.
  if (!decoded.ok) throw new Error(`a voiceprint that had passed is ${decoded.error.kind}`);
  return { label, voice: decoded.value };
}

/** Digest that is stored instead of the token. */
export async function tokenDigest(token: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)));
}

/** Streams per sweep; each costs a call of its object, and a statement if the sweep ends it. */
const BATCH_STREAMS = 200;
/** Longer than the end of a stream takes with several retries. */
const SLACK_MS = 10 * 60_000;
/**
 * How long a stream runs before a sweep checks it. Only its object knows whether the client is still connected: if the
 * object has lost its alarm, the row would count as an open stream for up to a day.
 */
const CHECK_AFTER_MS = 30 * 60_000;

/**
 * Ends streams that their objects should have ended: the platform gives up alarms if a deployment is broken for some
 * minutes, and an open row counts against the account's limit. An object that knows its stream checks it again; a row
 * without such an object ends as an error. Safe to run at any time, also twice at once.
 *
 * @throws the first fault, after all streams were checked
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
  const startedBefore = now - Math.min(CHECK_AFTER_MS, SLACK_MS + times.connectedMs);
  const open = await store.openSince(now - SLACK_MS - times.tokenMs, startedBefore, BATCH_STREAMS);
  const results = await Promise.allSettled(
    open.map(async (streamId) => {
      if (await objects.wake(streamId)) return;
      const ended = await store.end(streamId, { status: 'error', receivedSeconds: 0 }, now);
      if (ended) log('warn', 'live_without_object', { streamId });
    }),
  );
  const fault = results.find((result) => result.status === 'rejected');
  if (fault) throw fault.reason;
}
