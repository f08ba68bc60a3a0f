import { z } from '@hono/zod-openapi';
import { type FieldError, onePerField, type Parsed, toFieldErrors } from './errors.ts';
import {
  asObject,
  optionalChoice,
  optionalFlag,
  optionalMetadata,
  optionalSpeakerCount,
  optionalText,
  optionalWebhook,
  renameAliases,
  sourceUrl,
} from './fields.ts';
import {
  languageCode,
  TRANSCRIPTION_MODEL_ALIASES,
  TRANSCRIPTION_MODELS,
  type TranscriptionModel,
} from './languages.ts';

export const MODELS = ['precision-2', 'community-1'] as const;
export type ModelName = (typeof MODELS)[number];
export const DEFAULT_MODEL: ModelName = 'precision-2';
export const DEFAULT_TRANSCRIPTION_MODEL: TranscriptionModel = 'asr-tdt-0.6b-v3';

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
        description: 'Name or ISO 639 code; told from the audio if absent.',
      }),
    },
    { error: () => 'must be an object' },
  )
  .openapi('TranscriptionConfig');

/** Body of POST /v1/diarize as a caller may send it: unknown fields are ignored, null means absent. */
export const diarizeBodySchema = z
  .object({
    url: sourceUrl(),
    webhook: optionalWebhook(),
    webhookStatusOnly: optionalFlag(),
    model: optionalChoice(MODELS).openapi({ default: DEFAULT_MODEL }),
    numSpeakers: optionalSpeakerCount(),
    minSpeakers: optionalSpeakerCount(),
    maxSpeakers: optionalSpeakerCount(),
    turnLevelConfidence: optionalFlag(),
    exclusive: optionalFlag(),
    confidence: optionalFlag(),
    speechProbability: optionalFlag(),
    crosstalkProbability: optionalFlag(),
    speakerProbability: optionalFlag(),
    transcription: optionalFlag(),
    transcriptionConfig: transcriptionConfigSchema.nullish(),
    metadata: optionalMetadata(),
  })
  .openapi('DiarizeRequest', { example: { url: 'https://example.com/meeting.mp3', exclusive: true } });

/** A validated request with its defaults filled in; what a job stores. */
export interface DiarizeRequest {
  readonly url: string;
  readonly webhook?: string;
  readonly webhookStatusOnly: boolean;
  readonly model: ModelName;
  readonly numSpeakers?: number;
  readonly minSpeakers?: number;
  readonly maxSpeakers?: number;
  readonly turnLevelConfidence: boolean;
  readonly exclusive: boolean;
  readonly confidence: boolean;
  readonly speechProbability: boolean;
  readonly crosstalkProbability: boolean;
  readonly speakerProbability: boolean;
  readonly transcription: boolean;
  /** Set only together with `transcription`. `language` is an ISO 639 code. */
  readonly transcriptionConfig?: { readonly model: TranscriptionModel; readonly language?: string };
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Spellings that clients in the wild send. */
const ALIASES = { transcription_config: 'transcriptionConfig', turn_level_confidence: 'turnLevelConfidence' } as const;

/**
 * Reads the body of POST /v1/diarize. Finds every faulty field at once; says nothing about where `url` and `webhook` point.
 * @param options.transcription whether a transcription engine is configured
 */
export function parseDiarizeBody(body: unknown, options: { readonly transcription: boolean }): Parsed<DiarizeRequest> {
  const object = asObject(body);
  if (!object) return { ok: false, errors: [{ field: 'body', message: 'must be a JSON object' }] };
  const { body: named, sentAs } = renameAliases(object, ALIASES);
  const parsed = diarizeBodySchema.safeParse(named);
  const faults = parsed.success ? [] : toFieldErrors(parsed.error);
  const errors = onePerField([...faults, ...crossFieldErrors(without(named, faults), options)]);
  if (!parsed.success || errors.length > 0) return { ok: false, errors: errors.map((error) => asSent(error, sentAs)) };
  return { ok: true, value: withDefaults(parsed.data) };
}

/** The body's fields that are right by themselves. */
function without(body: Record<string, unknown>, faults: readonly FieldError[]): Record<string, unknown> {
  const faulty = new Set(faults.map(({ field }) => field.split('.')[0]));
  return Object.fromEntries(Object.entries(body).filter(([name]) => !faulty.has(name)));
}

/** Faults between fields. */
function crossFieldErrors(body: Record<string, unknown>, options: { readonly transcription: boolean }): FieldError[] {
  const errors: FieldError[] = [];
  const { numSpeakers: count, minSpeakers: min, maxSpeakers: max } = body;
  if (typeof min === 'number' && typeof max === 'number' && min > max) {
    errors.push({ field: 'minSpeakers', message: 'must be less than or equal to maxSpeakers' });
    errors.push({ field: 'maxSpeakers', message: 'must be greater than or equal to minSpeakers' });
  }
  if (typeof count === 'number') {
    if (typeof min === 'number' && count < min)
      errors.push({ field: 'numSpeakers', message: 'contradicts minSpeakers' });
    if (typeof max === 'number' && count > max)
      errors.push({ field: 'numSpeakers', message: 'contradicts maxSpeakers' });
  }
  if (body.transcription === true) {
    if (body.model === 'community-1') {
      errors.push({ field: 'transcription', message: 'is available with model precision-2 only' });
    } else if (!options.transcription) {
      errors.push({ field: 'transcription', message: 'is not configured on this service' });
    }
  }
  const config = asObject(body.transcriptionConfig);
  if (typeof config?.language === 'string' && config.language !== '') {
    const model = transcriptionModel(config.model);
    if (languageCode(model, config.language) === undefined) {
      errors.push({ field: 'transcriptionConfig.language', message: `is not a language of ${model}` });
    }
  }
  return errors;
}

/** The model that a checked wire name, or none, stands for. */
function transcriptionModel(name: unknown): TranscriptionModel {
  const known = TRANSCRIPTION_MODELS.find((model) => model === name || TRANSCRIPTION_MODEL_ALIASES[model] === name);
  return known ?? DEFAULT_TRANSCRIPTION_MODEL;
}

/** An error names the field as the caller spelled it. */
function asSent(error: FieldError, sentAs: ReadonlyMap<string, string>): FieldError {
  const [head, ...rest] = error.field.split('.');
  return { ...error, field: [sentAs.get(head) ?? head, ...rest].join('.') };
}

function withDefaults(body: z.infer<typeof diarizeBodySchema>): DiarizeRequest {
  const transcription = body.transcription ?? false;
  return {
    url: body.url,
    webhook: body.webhook ?? undefined,
    webhookStatusOnly: body.webhookStatusOnly ?? false,
    model: body.model ?? DEFAULT_MODEL,
    numSpeakers: body.numSpeakers ?? undefined,
    minSpeakers: body.minSpeakers ?? undefined,
    maxSpeakers: body.maxSpeakers ?? undefined,
    turnLevelConfidence: body.turnLevelConfidence ?? false,
    exclusive: body.exclusive ?? false,
    confidence: body.confidence ?? false,
    speechProbability: body.speechProbability ?? false,
    crosstalkProbability: body.crosstalkProbability ?? false,
    speakerProbability: body.speakerProbability ?? false,
    transcription,
    transcriptionConfig: transcription ? transcriptionSettings(body.transcriptionConfig ?? {}) : undefined,
    metadata: body.metadata ?? undefined,
  };
}

function transcriptionSettings(
  config: z.infer<typeof transcriptionConfigSchema>,
): DiarizeRequest['transcriptionConfig'] {
  const model = transcriptionModel(config.model);
  return { model, language: config.language ? languageCode(model, config.language) : undefined };
}
