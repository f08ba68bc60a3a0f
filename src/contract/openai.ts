import { z } from '@hono/zod-openapi';
import { dataUrlFault, isDataUrl } from './data-url.ts';
import type { FieldError, Parsed } from './errors.ts';
import { MODELS } from './fields.ts';
import {
  languageCode,
  TRANSCRIPTION_MODEL_ALIASES,
  TRANSCRIPTION_MODELS,
  type TranscriptionModel,
} from './languages.ts';
import { rawBytesSchema } from './media.ts';

/** Body of every error at OpenAI's addresses. */
export const openAiErrorSchema = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string().openapi({ example: 'invalid_request_error' }),
      param: z.string().nullable().openapi({ description: 'The first faulty field.' }),
      code: z.string().nullable(),
    }),
  })
  .openapi('OpenAiError');
export type OpenAiError = z.infer<typeof openAiErrorSchema>;

export const modelSchema = z
  .object({ id: z.string(), object: z.literal('model'), created: z.number().int(), owned_by: z.literal('rollcall') })
  .openapi('Model', { example: { id: 'precision-2', object: 'model', created: 0, owned_by: 'rollcall' } });
export const modelListSchema = z.object({ object: z.literal('list'), data: z.array(modelSchema) }).openapi('ModelList');
export type Model = z.infer<typeof modelSchema>;

/** OpenAI's model names, each with the model that is preferred if several have an engine. */
const OPENAI_NAMES = {
  'whisper-1': 'asr-large-v3-turbo',
  'gpt-4o-transcribe-diarize': 'asr-tdt-0.6b-v3',
} as const satisfies Readonly<Record<string, TranscriptionModel>>;

/** @param configured transcription models that have an engine */
export function modelIds(configured: readonly TranscriptionModel[]): string[] {
  return [...MODELS, ...configured, ...(configured.length > 0 ? Object.keys(OPENAI_NAMES) : [])];
}

export const describeModel = (id: string): Model => ({ id, object: 'model', created: 0, owned_by: 'rollcall' });

export const RESPONSE_FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json'] as const;
export type ResponseFormat = (typeof RESPONSE_FORMATS)[number];
/** Formats that can be streamed. */
const STREAMED_FORMATS: readonly ResponseFormat[] = ['json', 'text', 'diarized_json'];

const GRANULARITIES = ['word', 'segment'] as const;
type Granularity = (typeof GRANULARITIES)[number];

const MAX_KNOWN_SPEAKERS = 10;
const NAME_MAX_CHARS = 100;

/** The form of POST /v1/audio/transcriptions, for the API document; `parseTranscriptionForm` reads it. */
export const transcriptionFormSchema = z
  .object({
    file: rawBytesSchema.openapi({ type: 'string', format: 'binary', description: 'The recording.' }),
    model: z.string().openapi({
      example: 'whisper-1',
      description: `One of ${[...TRANSCRIPTION_MODELS, ...Object.keys(OPENAI_NAMES)].join(', ')}.`,
    }),
    language: z.string().optional().openapi({ example: 'en', description: 'Name or ISO 639 code.' }),
    response_format: z.enum(RESPONSE_FORMATS).optional().openapi({ default: 'json' }),
    'timestamp_granularities[]': z.array(z.enum(GRANULARITIES)).optional().openapi({
      description: 'Contents of verbose_json; segments if absent.',
    }),
    stream: z.boolean().optional().openapi({ default: false, description: 'Answers with server-sent events.' }),
    'known_speaker_names[]': z.array(z.string().min(1).max(NAME_MAX_CHARS)).max(MAX_KNOWN_SPEAKERS).optional(),
    'known_speaker_references[]': z.array(z.string()).max(MAX_KNOWN_SPEAKERS).optional().openapi({
      description: 'data: URLs of each named speaker alone, at most 30 s; 5 s and more match best.',
    }),
    prompt: z.string().optional().openapi({ description: 'Not used.' }),
    temperature: z.number().optional().openapi({ description: 'Not used.' }),
    chunking_strategy: z.string().optional().openapi({ description: 'Not used.' }),
    'include[]': z.array(z.string()).optional().openapi({ description: 'Not used.' }),
  })
  .openapi('TranscriptionForm');

const usageSchema = z
  .object({ type: z.literal('duration'), seconds: z.number() })
  .openapi({ description: 'Length of the recording, in whole seconds.' });

const spanFields = { start: z.number(), end: z.number() };

export const transcriptionSchema = z.object({ text: z.string(), usage: usageSchema }).openapi('Transcription');

export const verboseTranscriptionSchema = z
  .object({
    task: z.literal('transcribe'),
    language: z.string().openapi({ description: 'Code of the requested language, or `unknown`.' }),
    duration: z.number(),
    text: z.string(),
    words: z.array(z.object({ word: z.string(), ...spanFields })).optional(),
    segments: z
      .array(
        z.object({
          id: z.number().int(),
          seek: z.number(),
          ...spanFields,
          text: z.string(),
          tokens: z.array(z.number()),
          temperature: z.number(),
          avg_logprob: z.number(),
          compression_ratio: z.number(),
          no_speech_prob: z.number(),
        }),
      )
      .optional(),
    usage: usageSchema,
  })
  .openapi('VerboseTranscription');

const diarizedSegmentSchema = z.object({
  type: z.literal('transcript.text.segment'),
  id: z.string(),
  ...spanFields,
  speaker: z.string().openapi({ example: 'A', description: 'Name of a known speaker, otherwise A, B and so on.' }),
  text: z.string(),
});
export type DiarizedSegment = z.infer<typeof diarizedSegmentSchema>;

export const diarizedTranscriptionSchema = z
  .object({
    task: z.literal('transcribe'),
    duration: z.number(),
    text: z.string(),
    segments: z.array(diarizedSegmentSchema),
    usage: usageSchema,
  })
  .openapi('DiarizedTranscription');

/** The data of one event of a stream. */
export const transcriptionEventSchema = z
  .union([
    z.object({ type: z.literal('transcript.text.delta'), delta: z.string(), segment_id: z.string().optional() }),
    diarizedSegmentSchema,
    z.object({ type: z.literal('transcript.text.done'), text: z.string() }),
    openAiErrorSchema,
  ])
  .openapi('TranscriptionEvent');
export type TranscriptionEvent = z.infer<typeof transcriptionEventSchema>;

export interface KnownSpeaker {
  readonly name: string;
  /** A `data:` URL. */
  readonly reference: string;
}

/** A validated form without its file. */
export interface TranscriptionForm {
  readonly model: TranscriptionModel;
  /** ISO 639 code. */
  readonly language?: string;
  readonly format: ResponseFormat;
  readonly granularities: readonly Granularity[];
  readonly isStreamed: boolean;
  readonly knownSpeakers: readonly KnownSpeaker[];
}

/**
 * Reads the fields of POST /v1/audio/transcriptions. Reports all faulty fields at once.
 *
 * @param fields values by name; if a single-valued field is repeated, the last value counts
 * @param configured transcription models that have an engine
 */
export function parseTranscriptionForm(
  fields: ReadonlyMap<string, readonly string[]>,
  configured: readonly TranscriptionModel[],
): Parsed<TranscriptionForm> {
  const errors: FieldError[] = [];
  // Clients send an empty text for unset fields.
  const valuesOf = (name: string) => (fields.get(name) ?? []).filter((value) => value !== '');
  const lastOf = (name: string) => valuesOf(name).at(-1);
  const choice = <T extends string>(field: string, value: string, known: readonly T[]): T | undefined => {
    const found = known.find((name) => name === value);
    if (found === undefined) errors.push({ field, message: `must be one of: ${known.join(', ')}` });
    return found;
  };

  const language = lastOf('language');
  const model = parseModel(lastOf('model'), language, configured, errors);
  const code = language === undefined || model === undefined ? undefined : languageCode(model, language);
  if (language !== undefined && code === undefined) {
    const models = model === undefined ? TRANSCRIPTION_MODELS : [model];
    const isKnown = model === undefined && models.some((name) => languageCode(name, language) !== undefined);
    if (!isKnown) errors.push({ field: 'language', message: `is not a language of ${models.join(' or ')}` });
  }
  const format = choice('response_format', lastOf('response_format') ?? 'json', RESPONSE_FORMATS) ?? 'json';
  const requested = valuesOf('timestamp_granularities');
  const granularities = requested.flatMap((value) => choice('timestamp_granularities', value, GRANULARITIES) ?? []);
  const isStreamed = choice('stream', (lastOf('stream') ?? 'false').toLowerCase(), ['true', 'false']) === 'true';
  if (isStreamed && !STREAMED_FORMATS.includes(format))
    errors.push({ field: 'stream', message: `is available with ${STREAMED_FORMATS.join(', ')} only` });
  const knownSpeakers = parseKnownSpeakers(
    valuesOf('known_speaker_names'),
    valuesOf('known_speaker_references'),
    errors,
  );
  if (errors.length > 0 || model === undefined) return { ok: false, errors };
  return {
    ok: true,
    value: {
      model,
      language: code,
      format,
      granularities: granularities.length > 0 ? granularities : ['segment'],
      isStreamed,
      knownSpeakers,
    },
  };
}

/** For OpenAI's names: a model that has an engine and supports the language, preferably the one in `OPENAI_NAMES`. */
function parseModel(
  name: string | undefined,
  language: string | undefined,
  configured: readonly TranscriptionModel[],
  errors: FieldError[],
): TranscriptionModel | undefined {
  const fault = (message: string) => void errors.push({ field: 'model', message });
  if (name === undefined) return void fault('is required');
  const usual = Object.entries(OPENAI_NAMES).find(([known]) => known === name)?.[1];
  const named = TRANSCRIPTION_MODELS.find((model) => model === name || TRANSCRIPTION_MODEL_ALIASES[model] === name);
  if (usual === undefined && named === undefined)
    return void fault(`must be one of: ${[...TRANSCRIPTION_MODELS, ...Object.keys(OPENAI_NAMES)].join(', ')}`);
  if (configured.length === 0)
    return void fault('needs a transcription engine, and none is configured on this service');
  if (named !== undefined) {
    if (configured.includes(named)) return named;
    return void fault(`${named} is not configured on this service; it has ${configured.join(', ')}`);
  }
  const candidates = [...configured].sort((a, b) => Number(b === usual) - Number(a === usual));
  const speaks = (model: TranscriptionModel) => language === undefined || languageCode(model, language) !== undefined;
  return candidates.find(speaks) ?? candidates[0];
}

function parseKnownSpeakers(
  names: readonly string[],
  references: readonly string[],
  errors: FieldError[],
): KnownSpeaker[] {
  const [nameField, referenceField] = ['known_speaker_names', 'known_speaker_references'];
  if (names.length > MAX_KNOWN_SPEAKERS)
    errors.push({ field: nameField, message: `must hold at most ${MAX_KNOWN_SPEAKERS} names` });
  if (names.some((name) => name.length > NAME_MAX_CHARS || /^speaker_/i.test(name)))
    errors.push({
      field: nameField,
      message: `must have at most ${NAME_MAX_CHARS} characters each, and not start with SPEAKER_`,
    });
  if (new Set(names).size < names.length) errors.push({ field: nameField, message: 'must be unique in the request' });
  if (names.length !== references.length)
    errors.push({ field: referenceField, message: `must be as many as ${nameField}` });
  for (const [index, reference] of references.entries()) {
    const fault = isDataUrl(reference) ? dataUrlFault(reference) : 'must be a data: URL';
    if (fault) errors.push({ field: `${referenceField}.${index}`, message: `cannot be read: ${fault}` });
  }
  return names.map((name, index) => ({ name, reference: references[index] }));
}
