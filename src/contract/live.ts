import { z } from '@hono/zod-openapi';
import type { FieldError, Parsed } from './errors.ts';
import { expected, MODELS, optionalChoice, optionalFlag, parseBody } from './fields.ts';
import { type SubmittedVoiceprint, submittedVoiceprints, voiceprintErrors } from './identify.ts';
import { LATENCY_MS, MAX_SPEAKERS } from './live-limits.ts';

export const SAMPLE_RATES_HZ = [8000, 16_000, 24_000, 44_100, 48_000] as const;
export type SampleRateHz = (typeof SAMPLE_RATES_HZ)[number];
export const ENCODINGS = ['pcm_f32le', 'pcm_s16le', 'mulaw'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The only sample rate for µ-law. */
export const MULAW_RATE_HZ: SampleRateHz = 8000;
export const ENVELOPES = ['twilio'] as const;

export const LIVE_DEFAULTS = {
  maxSpeakers: MAX_SPEAKERS,
  sampleRate: 16_000,
  encoding: 'pcm_f32le',
  latency: LATENCY_MS.default,
  corrections: false,
  resume: false,
} as const;

const wholeNumber = (min: number, max: number) =>
  z.int(expected('a whole number')).min(min, `must be at least ${min}`).max(max, `must be at most ${max}`).nullish();

/** Options of a stream, except voiceprints. */
const options = {
  maxSpeakers: wholeNumber(1, MAX_SPEAKERS).openapi({ default: LIVE_DEFAULTS.maxSpeakers }),
  sampleRate: z
    .literal(SAMPLE_RATES_HZ, { error: () => `must be one of: ${SAMPLE_RATES_HZ.join(', ')}` })
    .nullish()
    .openapi({
      // Of a union of number literals, the generator writes only the first.
      type: ['integer', 'null'],
      enum: [...SAMPLE_RATES_HZ, null],
      default: LIVE_DEFAULTS.sampleRate,
      description: 'Samples per second of the audio that the client sends.',
    }),
  encoding: optionalChoice(ENCODINGS).openapi({
    default: LIVE_DEFAULTS.encoding,
    description: '`mulaw` has 8000 samples per second; its frames have 20 ms or a multiple of that.',
  }),
  envelope: optionalChoice(ENVELOPES).openapi({
    description: '`twilio`: the audio is `mulaw` in the JSON messages of a Twilio media stream.',
  }),
  latency: wholeNumber(LATENCY_MS.min, LATENCY_MS.max).openapi({
    default: LIVE_DEFAULTS.latency,
    description:
      'Target time in milliseconds from a moment to its event. ' +
      'New speakers and unclear changes take longer. A higher latency means fewer errors.',
  }),
  corrections: optionalFlag().openapi({
    default: LIVE_DEFAULTS.corrections,
    description: 'Whether the service corrects events that had the wrong speaker.',
  }),
  resume: optionalFlag().openapi({
    default: LIVE_DEFAULTS.resume,
    description: 'Whether another connection may resume the stream within 60 s of a lost connection.',
  }),
  model: optionalChoice(MODELS),
};

/** Body of POST /v1/live. */
export const liveBodySchema = z
  .object({
    ...options,
    voiceprints: submittedVoiceprints().nullish().openapi({
      description: 'Known speakers, reported in `data.match` of start events. Stored until the stream ends.',
    }),
  })
  .openapi('LiveRequest', { example: {} });

/** The requested options without voiceprints, stored and returned with the stream. */
export const liveInputSchema = z.object(options).openapi('LiveInput', { example: {} });
export type LiveInput = z.infer<typeof liveInputSchema>;

export interface LiveRequest {
  readonly input: LiveInput;
  readonly voiceprints: readonly SubmittedVoiceprint[];
}

/**
 * Reads the body of POST /v1/live. Reports all faulty fields at once.
 * @param voiceprintFault fault of a voiceprint that has the right form; undefined for a valid one
 */
export function parseLiveBody(
  body: unknown,
  voiceprintFault: (voiceprint: string) => string | undefined,
): Parsed<LiveRequest> {
  const parsed = parseBody(body, liveBodySchema, (fields, raw) => [
    ...voiceprintErrors(raw.voiceprints, voiceprintFault),
    ...telephonyErrors(fields),
  ]);
  if (!parsed.ok) return parsed;
  const { voiceprints, ...fields } = parsed.value;
  const input = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
  return {
    ok: true,
    value: { input, voiceprints: (voiceprints ?? []).map(({ label, voiceprint }) => ({ label, voiceprint })) },
  };
}

function telephonyErrors({ envelope, encoding, sampleRate }: Record<string, unknown>): FieldError[] {
  const errors: FieldError[] = [];
  const isInEnvelope = typeof envelope === 'string';
  if (isInEnvelope && typeof encoding === 'string' && encoding !== 'mulaw')
    errors.push({ field: 'encoding', message: `must be mulaw with the envelope ${envelope}` });
  const isMuLaw = isInEnvelope || encoding === 'mulaw';
  if (isMuLaw && typeof sampleRate === 'number' && sampleRate !== MULAW_RATE_HZ)
    errors.push({ field: 'sampleRate', message: `must be ${MULAW_RATE_HZ} with the encoding mulaw` });
  return errors;
}

export const liveStatusSchema = z.enum(['created', 'running', 'done', 'error']).openapi('LiveStatus');
export type LiveStatus = z.infer<typeof liveStatusSchema>;

export const liveCreatedSchema = z
  .object({
    id: z.string(),
    url: z.string().openapi({ description: 'WebSocket address with a token that is valid for one connection.' }),
  })
  .openapi('LiveCreated', {
    example: {
      id: '89266a74-7538-4e62-aed4-602f160c518f',
      url: 'wss://example.com/v1/live/89266a74-7538-4e62-aed4-602f160c518f/socket?token=b5bb9d8014a0f9b1',
    },
  });
export type LiveCreated = z.infer<typeof liveCreatedSchema>;

export const liveStreamSchema = z
  .object({
    id: z.string(),
    status: liveStatusSchema,
    startedAt: z.iso.datetime().nullable(),
    completedAt: z.iso.datetime().nullable(),
    input: liveInputSchema,
  })
  .openapi('LiveStream');
export type LiveStreamBody = z.infer<typeof liveStreamSchema>;

/** Longest text that is parsed; the only client message has 24 characters. */
const MAX_TEXT_CHARS = 1024;

/** The text messages of a client. */
const clientMessageSchema = z.object({ type: z.literal('end_of_stream') });
export type ClientMessage = z.infer<typeof clientMessageSchema>;

/** A speaker begins or ends a turn; `match` only if the request had voiceprints. */
export interface SpeakerMessage {
  readonly type: 'diarization_speaker_start' | 'diarization_speaker_end';
  readonly data: {
    /** Seconds from the start of the stream. */
    readonly timestamp: number;
    readonly speaker: string;
    readonly match?: string | null;
  };
}

/**
 * Sent only if corrections were requested: relabel `from` as `to` in [start, end). All changes apply at once.
 */
export interface CorrectionMessage {
  readonly type: 'diarization_speaker_correction';
  readonly data: {
    readonly changes: readonly {
      /** Seconds from the start of the stream. */
      readonly start: number;
      readonly end: number;
      readonly from: string;
      readonly to: string;
    }[];
  };
}

export interface ErrorMessage {
  readonly type: 'error';
  readonly message: string;
}

/** Sent only if `resume` was requested: data with which a later connection resumes the stream. */
export interface ResumeMessage {
  readonly type: 'resume';
  readonly token: string;
  /** Number of frames that the service has stored; a resumed stream continues after them. */
  readonly frame: number;
}

/** First message of a connection that resumes a stream: the client sends the frames from `frame` on. */
export interface ResumedMessage {
  readonly type: 'resumed';
  readonly frame: number;
}

export type ServerMessage = SpeakerMessage | CorrectionMessage | ErrorMessage | ResumeMessage | ResumedMessage;

/** The message of a client's text frame; undefined if it is no message of the contract. */
export function parseClientMessage(text: string): ClientMessage | undefined {
  if (text.length > MAX_TEXT_CHARS) return undefined;
  try {
    return clientMessageSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The messages of a Twilio media stream; fields that are not used are ignored. */
const twilioMessageSchema = z.discriminatedUnion('event', [
  z.object({ event: z.enum(['connected', 'start', 'stop', 'mark', 'dtmf']) }),
  z.object({ event: z.literal('media'), media: z.object({ track: z.string().optional(), payload: z.string() }) }),
]);

/** A parsed message of a Twilio media stream. */
export type TwilioMessage =
  /** @param payload in base64 */
  | { readonly kind: 'audio'; readonly payload: string }
  | { readonly kind: 'end' }
  /** Facts of the call, or audio of the other track. */
  | { readonly kind: 'other' };

/** @returns undefined unless the text is a message of a Twilio media stream */
export function parseTwilioMessage(text: string): TwilioMessage | undefined {
  try {
    const message = twilioMessageSchema.parse(JSON.parse(text));
    if (message.event !== 'media') return { kind: message.event === 'stop' ? 'end' : 'other' };
    // Only the caller's track: with both, their frames would follow one another instead of being mixed.
    if ((message.media.track ?? 'inbound') !== 'inbound') return { kind: 'other' };
    return { kind: 'audio', payload: message.media.payload };
  } catch {
    return undefined;
  }
}
