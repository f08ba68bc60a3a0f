import { z } from '@hono/zod-openapi';
import { isDataUrl } from './data-url.ts';
import { type FieldError, onePerField, type Parsed, toFieldErrors } from './errors.ts';

/** `is required` for an absent value, `must be …` for one of the wrong type. */
export function expected(what: string): { error: (issue: { input: unknown }) => string } {
  return { error: ({ input }) => (input === undefined ? 'is required' : `must be ${what}`) };
}

/** A required, non-empty text. */
export const requiredText = () => z.string(expected('a string')).min(1, 'must not be empty');

/** Longest address that is stored with a job; `data:` URLs contain the recording and have a separate bound. */
export const URL_MAX_CHARS = 8192;
const URL_TOO_LONG = `must be at most ${URL_MAX_CHARS} characters`;

/** Address of a recording. Only its form is checked here. */
export const sourceUrl = () =>
  requiredText()
    .refine((url) => url.length <= URL_MAX_CHARS || isDataUrl(url), URL_TOO_LONG)
    .openapi({
      example: 'https://example.com/meeting.mp3',
      description: 'Address of the recording: http, https, media, or data with at most 8 MiB of audio.',
      pattern: '^(https?://|media://|data:)',
    });

/** Address of the caller's server; whether it may be called is checked when the job is created. */
export const optionalWebhook = () =>
  requiredText().max(URL_MAX_CHARS, URL_TOO_LONG).nullish().openapi({
    example: 'https://example.com/done',
    description: 'https address that receives the result when the job has ended.',
    pattern: '^https?://',
  });

/** A non-empty text, absent or null. */
export const optionalText = () => requiredText().nullish();

/** true, false, absent or null. */
export const optionalFlag = () => z.boolean(expected('a boolean')).nullish();

/** A count of speakers. JSON has one number type, so `2.0` and `1e20` are whole numbers. */
export const optionalSpeakerCount = () =>
  z
    .number(expected('a whole number'))
    .refine(Number.isInteger, 'must be a whole number')
    .min(1, 'must be at least 1')
    .nullish()
    .openapi({ type: ['integer', 'null'], minimum: 1, example: 2 });

/** One of the names, absent or null; the message lists them. */
export const optionalChoice = <const T extends readonly [string, ...string[]]>(names: T) =>
  z.enum(names, { error: () => `must be one of: ${names.join(', ')}` }).nullish();

const METADATA_MAX_ENTRIES = 16;
const METADATA_MAX_KEY_CHARS = 64;
const METADATA_MAX_VALUE_CHARS = 512;
/** Bound for the job's row, which stores the labels: about the maximum of all entries in ASCII. */
const METADATA_MAX_BYTES = 10_240;

/** The caller's labels, stored and returned with the job. */
export const optionalMetadata = () =>
  z
    .record(
      z.string(),
      z
        .string(expected('a string'))
        .max(METADATA_MAX_VALUE_CHARS, `must be at most ${METADATA_MAX_VALUE_CHARS} characters`),
      expected('an object of strings'),
    )
    .nullish()
    .openapi({
      example: { call: '4711' },
      maxProperties: METADATA_MAX_ENTRIES,
      description: `Strings of your own, returned with the job; keys of 1 to ${METADATA_MAX_KEY_CHARS} characters.`,
    });

/**
 * Faults of the labels as a whole, reported in addition to those of single labels. Takes the raw object: validation
 * drops `__proto__`, and no label may be lost silently.
 */
export function metadataErrors(metadata: unknown): FieldError[] {
  const keys = Object.keys(asObject(metadata) ?? {});
  const fault = (message: string): FieldError[] => [{ field: 'metadata', message }];
  if (keys.length > METADATA_MAX_ENTRIES) return fault(`must have at most ${METADATA_MAX_ENTRIES} entries`);
  // A character has at most two UTF-16 units, so a longer key is too long without a count of its characters.
  const isTooLong = (key: string) =>
    key.length > 2 * METADATA_MAX_KEY_CHARS || [...key].length > METADATA_MAX_KEY_CHARS;
  if (keys.some((key) => key.length === 0 || isTooLong(key)))
    return fault(`keys must be 1 to ${METADATA_MAX_KEY_CHARS} characters long`);
  if (keys.includes('__proto__')) return fault('must not have the key __proto__');
  const values = Object.values(asObject(metadata) ?? {});
  // The schema reports faults of single values.
  if (values.some((value) => typeof value !== 'string' || value.length > 2 * METADATA_MAX_VALUE_CHARS)) return [];
  const isTooLarge = new TextEncoder().encode(JSON.stringify(metadata ?? {})).length > METADATA_MAX_BYTES;
  return isTooLarge ? fault(`must be at most ${METADATA_MAX_BYTES} bytes of JSON`) : [];
}

/** The body as an object; undefined for anything else (an array, a string, null). */
export function asObject(body: unknown): Record<string, unknown> | undefined {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? (body as Record<string, unknown>)
    : undefined;
}

/**
 * Renames aliases to the names of the contract. If the contract's name has a value too, that value wins and the alias
 * stays in the body.
 * @returns the renamed body, and the alias of each renamed field
 */
export function renameAliases(
  body: Record<string, unknown>,
  aliases: Readonly<Record<string, string>>,
): { readonly body: Record<string, unknown>; readonly sentAs: ReadonlyMap<string, string> } {
  const renamed = { ...body };
  const sentAs = new Map<string, string>();
  for (const [alias, name] of Object.entries(aliases)) {
    if (!Object.hasOwn(body, alias) || body[alias] === null) continue;
    if (Object.hasOwn(body, name) && body[name] !== null) continue;
    renamed[name] = body[alias];
    delete renamed[alias];
    sentAs.set(name, alias);
  }
  return { body: renamed, sentAs };
}

export const MODELS = ['precision-2', 'community-1'] as const;
export type ModelName = (typeof MODELS)[number];
const DEFAULT_MODEL: ModelName = 'precision-2';

/** Fields that the bodies of all job requests have. */
export const jobFields = () => ({
  url: sourceUrl(),
  webhook: optionalWebhook(),
  webhookStatusOnly: optionalFlag(),
  model: optionalChoice(MODELS).openapi({ default: DEFAULT_MODEL }),
  metadata: optionalMetadata(),
});

/** Fields of every validated job request. */
export interface JobFields {
  readonly url: string;
  readonly webhook?: string;
  readonly webhookStatusOnly: boolean;
  readonly model: ModelName;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** For the API document: another spelling of a field, see `parseBody`. */
export const aliasOf = (name: string) => ({
  deprecated: true,
  description: `Alias of ${name}, which takes precedence.`,
});

/** Fields of the jobs that diarize a recording of several speakers. */
export const diarizationFields = () => ({
  numSpeakers: optionalSpeakerCount(),
  minSpeakers: optionalSpeakerCount(),
  maxSpeakers: optionalSpeakerCount(),
  turnLevelConfidence: optionalFlag(),
  turn_level_confidence: optionalFlag().openapi(aliasOf('turnLevelConfidence')),
  exclusive: optionalFlag(),
  confidence: optionalFlag(),
});

/** Fields of a validated request for a diarization in addition to `JobFields`. */
export interface DiarizationFields {
  readonly numSpeakers?: number;
  readonly minSpeakers?: number;
  readonly maxSpeakers?: number;
  readonly turnLevelConfidence: boolean;
  readonly exclusive: boolean;
  readonly confidence: boolean;
}

type Nullish<T> = { readonly [K in keyof T]?: T[K] | null };

/** The fields with defaults for null and absent ones. */
export function jobFieldsOf(body: Nullish<JobFields> & { readonly url: string }): JobFields {
  return {
    url: body.url,
    webhook: body.webhook ?? undefined,
    webhookStatusOnly: body.webhookStatusOnly ?? false,
    model: body.model ?? DEFAULT_MODEL,
    metadata: body.metadata ?? undefined,
  };
}

/** Like `jobFieldsOf`, for the fields of jobs that diarize. */
export function diarizationFieldsOf(body: Nullish<DiarizationFields>): DiarizationFields {
  return {
    numSpeakers: body.numSpeakers ?? undefined,
    minSpeakers: body.minSpeakers ?? undefined,
    maxSpeakers: body.maxSpeakers ?? undefined,
    turnLevelConfidence: body.turnLevelConfidence ?? false,
    exclusive: body.exclusive ?? false,
    confidence: body.confidence ?? false,
  };
}

/** Counts of speakers that contradict each other. */
export function speakerCountErrors(body: Record<string, unknown>): FieldError[] {
  const errors: FieldError[] = [];
  const { numSpeakers: count, minSpeakers: min, maxSpeakers: max } = body;
  if (typeof min === 'number' && typeof max === 'number' && min > max) {
    errors.push({ field: 'minSpeakers', message: 'must be less than or equal to maxSpeakers' });
    errors.push({ field: 'maxSpeakers', message: 'must be greater than or equal to minSpeakers' });
  }
  if (typeof count === 'number') {
    if (typeof min === 'number' && count < min) {
      errors.push({ field: 'numSpeakers', message: 'contradicts minSpeakers' });
    }
    if (typeof max === 'number' && count > max) {
      errors.push({ field: 'numSpeakers', message: 'contradicts maxSpeakers' });
    }
  }
  return errors;
}

/** Spellings of fields that existing clients send. */
const ALIASES = {
  transcription_config: 'transcriptionConfig',
  turn_level_confidence: 'turnLevelConfidence',
} as const;

/**
 * Reads the body of a request. Reports all faulty fields at once, in the caller's spelling.
 *
 * @param between finds faults between fields. Gets the fields without faults, and all raw fields. If a field already
 *   has a fault, that one is reported.
 */
export function parseBody<S extends z.ZodType>(
  body: unknown,
  schema: S,
  between: (body: Record<string, unknown>, raw: Record<string, unknown>) => FieldError[] = () => [],
): Parsed<z.infer<S>> {
  const object = asObject(body);
  if (!object) return { ok: false, errors: [{ field: 'body', message: 'must be a JSON object' }] };
  const { body: named, sentAs } = renameAliases(object, ALIASES);
  const parsed = schema.safeParse(named);
  const faults = parsed.success ? [] : toFieldErrors(parsed.error);
  const errors = onePerField([...faults, ...between(withoutFaulty(named, faults), named)]);
  if (!parsed.success || errors.length > 0) return { ok: false, errors: errors.map((error) => asSent(error, sentAs)) };
  return { ok: true, value: parsed.data };
}

/** The body's fields without faults. */
function withoutFaulty(body: Record<string, unknown>, faults: readonly FieldError[]): Record<string, unknown> {
  const faulty = new Set(faults.map(({ field }) => headOf(field)));
  return Object.fromEntries(Object.entries(body).filter(([name]) => !faulty.has(name)));
}

function asSent(error: FieldError, sentAs: ReadonlyMap<string, string>): FieldError {
  const head = headOf(error.field);
  const alias = sentAs.get(head);
  return alias === undefined ? error : { ...error, field: alias + error.field.slice(head.length) };
}

/** The first part of a dotted path. */
function headOf(field: string): string {
  const dot = field.indexOf('.');
  return dot < 0 ? field : field.slice(0, dot);
}
