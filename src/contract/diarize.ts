import { z } from '@hono/zod-openapi';
import type { FieldError, Parsed } from './errors.ts';
import {
  aliasOf,
  asObject,
  type DiarizationFields,
  diarizationFields,
  diarizationFieldsOf,
  type JobFields,
  jobFields,
  jobFieldsOf,
  metadataErrors,
  optionalChoice,
  optionalFlag,
  optionalSpeakerCount,
  optionalText,
  parseBody,
  speakerCountErrors,
} from './fields.ts';
import {
  languageCode,
  TRANSCRIPTION_MODEL_ALIASES,
  TRANSCRIPTION_MODELS,
  type TranscriptionModel,
} from './languages.ts';

const DEFAULT_TRANSCRIPTION_MODEL: TranscriptionModel = 'asr-tdt-0.6b-v3';

const transcriptionConfigSchema = z
  .object(
    {
      model: z
        .enum([...TRANSCRIPTION_MODELS, ...Object.values(TRANSCRIPTION_MODEL_ALIASES)], {
          error: () => `must be one of: ${TRANSCRIPTION_MODELS.join(', ')}`,
        })
        .nullish()
        .openapi({ enum: [...TRANSCRIPTION_MODELS, null], default: DEFAULT_TRANSCRIPTION_MODEL }),
      language: optionalText().openapi({
        example: 'de',
        description: 'Name or ISO 639 code; detected from the audio if absent.',
      }),
    },
    { error: () => 'must be an object' },
  )
  .openapi('TranscriptionConfig');

/** Body of POST /v1/diarize: unknown fields are ignored, null means absent. */
export const diarizeBodySchema = z
  .object({
    ...jobFields(),
    ...diarizationFields(),
    speechProbability: optionalFlag(),
    crosstalkProbability: optionalFlag(),
    speakerProbability: optionalFlag(),
    embeddings: optionalFlag().openapi({
      description: 'Adds `voiceprints`: a voiceprint of each speaker with enough speech, for POST /v1/identify.',
    }),
    channels: optionalChoice(['separate']).openapi({
      description: 'Diarizes each channel separately, at most 8; if absent, the mean of the channels.',
    }),
    transcription: optionalFlag(),
    transcriptionConfig: transcriptionConfigSchema.nullish(),
    transcription_config: transcriptionConfigSchema.nullish().openapi(aliasOf('transcriptionConfig')),
  })
  .openapi('DiarizeRequest', { example: { url: 'https://example.com/meeting.mp3', exclusive: true } });

/** A validated request with its defaults, as a job stores it. */
export interface DiarizeRequest extends JobFields, DiarizationFields {
  readonly speechProbability: boolean;
  readonly crosstalkProbability: boolean;
  readonly speakerProbability: boolean;
  /** Absent instead of false, so that the hash of requests without it, stored with their idempotency keys, is kept. */
  readonly embeddings?: true;
  /** Absent for the mean of the channels. */
  readonly channels?: 'separate';
  /** Job whose stored analysis replaces reading the recording; set only by the service. */
  readonly recountOf?: string;
  readonly transcription: boolean;
  /** Set only together with `transcription`. `language` is an ISO 639 code. */
  readonly transcriptionConfig?: { readonly model: TranscriptionModel; readonly language?: string };
}

/**
 * Reads the body of POST /v1/diarize. Reports all faulty fields at once, but does not check where `url` and `webhook`
 * point.
 * @param options.transcription models for which an engine is configured
 */
export function parseDiarizeBody(
  body: unknown,
  options: { readonly transcription: readonly TranscriptionModel[] },
): Parsed<DiarizeRequest> {
  const parsed = parseBody(body, diarizeBodySchema, (fields, raw) => [
    ...metadataErrors(raw.metadata),
    ...speakerCountErrors(fields),
    ...transcriptionErrors(fields, raw.transcriptionConfig, options.transcription),
    ...languageErrors(raw.transcriptionConfig),
    ...channelErrors(fields),
  ]);
  return parsed.ok ? { ok: true, value: withDefaults(parsed.value) } : parsed;
}

function transcriptionErrors(
  body: Record<string, unknown>,
  settings: unknown,
  configured: readonly TranscriptionModel[],
): FieldError[] {
  if (body.transcription !== true) return [];
  if (body.model === 'community-1') {
    return [{ field: 'transcription', message: 'is available with model precision-2 only' }];
  }
  if (configured.length === 0) return [{ field: 'transcription', message: 'is not configured on this service' }];
  const model = transcriptionModel(asObject(settings)?.model ?? DEFAULT_TRANSCRIPTION_MODEL);
  if (model === undefined || configured.includes(model)) return [];
  const message = `${model} is not configured on this service; it has ${configured.join(', ')}`;
  return [{ field: 'transcriptionConfig.model', message }];
}

/** Takes the raw settings: with a faulty model, the language is still checked, against all models. */
function languageErrors(settings: unknown): FieldError[] {
  const { model: name, language } = asObject(settings) ?? {};
  if (typeof language !== 'string' || language === '') return [];
  const model = transcriptionModel(name ?? DEFAULT_TRANSCRIPTION_MODEL);
  const models = model === undefined ? TRANSCRIPTION_MODELS : [model];
  if (models.some((candidate) => languageCode(candidate, language) !== undefined)) return [];
  return [{ field: 'transcriptionConfig.language', message: `is not a language of ${models.join(' or ')}` }];
}

/** Fields that need the mean of all channels. */
const MIX_FIELDS = [
  'confidence',
  'speechProbability',
  'crosstalkProbability',
  'speakerProbability',
  'transcription',
] as const;

function channelErrors(body: Record<string, unknown>): FieldError[] {
  if (body.channels !== 'separate') return [];
  return MIX_FIELDS.filter((field) => body[field] === true).map((field) => ({
    field,
    message: 'is not available with separate channels',
  }));
}

/** The model of a name or alias; undefined for an unknown name. */
function transcriptionModel(name: unknown): TranscriptionModel | undefined {
  return TRANSCRIPTION_MODELS.find((model) => model === name || TRANSCRIPTION_MODEL_ALIASES[model] === name);
}

function withDefaults(body: z.infer<typeof diarizeBodySchema>): DiarizeRequest {
  const transcription = body.transcription ?? false;
  return {
    ...jobFieldsOf(body),
    ...diarizationFieldsOf(body),
    speechProbability: body.speechProbability ?? false,
    crosstalkProbability: body.crosstalkProbability ?? false,
    speakerProbability: body.speakerProbability ?? false,
    embeddings: body.embeddings || undefined,
    channels: body.channels ?? undefined,
    transcription,
    transcriptionConfig: transcription ? transcriptionSettings(body.transcriptionConfig ?? {}) : undefined,
  };
}

function transcriptionSettings(
  config: z.infer<typeof transcriptionConfigSchema>,
): DiarizeRequest['transcriptionConfig'] {
  const model = transcriptionModel(config.model) ?? DEFAULT_TRANSCRIPTION_MODEL;
  return { model, language: config.language ? languageCode(model, config.language) : undefined };
}

/** Body of POST /v1/jobs/{jobId}/recount. */
export const recountBodySchema = z
  .object({
    numSpeakers: optionalSpeakerCount(),
    minSpeakers: optionalSpeakerCount(),
    maxSpeakers: optionalSpeakerCount(),
  })
  .openapi('RecountRequest', { example: { numSpeakers: 3 } });

/** The bounds of a recount; each replaces the job's own. */
export interface RecountRequest {
  readonly numSpeakers: number | undefined;
  readonly minSpeakers: number | undefined;
  readonly maxSpeakers: number | undefined;
}

/** Reads the body of POST /v1/jobs/{jobId}/recount. Reports all faulty fields at once. */
export function parseRecountBody(body: unknown): Parsed<RecountRequest> {
  const parsed = parseBody(body, recountBodySchema, speakerCountErrors);
  if (!parsed.ok) return parsed;
  const { numSpeakers, minSpeakers, maxSpeakers } = parsed.value;
  return {
    ok: true,
    value: {
      numSpeakers: numSpeakers ?? undefined,
      minSpeakers: minSpeakers ?? undefined,
      maxSpeakers: maxSpeakers ?? undefined,
    },
  };
}
