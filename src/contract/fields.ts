import { z } from '@hono/zod-openapi';
import { isDataUrl } from './data-url.ts';
import type { FieldError } from './errors.ts';

/** `is required` for an absent value, `must be …` for one of the wrong type. */
export function expected(what: string): { error: (issue: { input: unknown }) => string } {
  return { error: ({ input }) => (input === undefined ? 'is required' : `must be ${what}`) };
}

/** A text that must be there, with something in it. */
export const requiredText = () => z.string(expected('a string')).min(1, 'must not be empty');

/** Longest address that is kept with a job; `data:` URLs carry the recording itself and have a bound of their own. */
export const URL_MAX_CHARS = 8192;
const URL_TOO_LONG = `must be at most ${URL_MAX_CHARS} characters`;

/** Address of a recording. Only its form as a text is looked at here. */
export const sourceUrl = () =>
  requiredText()
    .refine((url) => url.length <= URL_MAX_CHARS || isDataUrl(url), URL_TOO_LONG)
    .openapi({
      example: 'https://example.com/meeting.mp3',
      description: 'Address of the recording: http, https, media, or data with at most 8 MiB of audio.',
      pattern: '^(https?://|media://|data:)',
    });

/** Address of the caller's own server; whether it may be called is looked at when the job is created. */
export const optionalWebhook = () =>
  requiredText().max(URL_MAX_CHARS, URL_TOO_LONG).nullish().openapi({
    example: 'https://example.com/done',
    description: 'Gets the result when the job has ended; https.',
    pattern: '^https?://',
  });

/** A text with something in it, absent or null. */
export const optionalText = () => requiredText().nullish();

/** true, false, absent or null. */
export const optionalFlag = () => z.boolean(expected('a boolean')).nullish();

/** A count of speakers. JSON has one number type, so `2.0` is the whole number 2, and `1e20` is one too. */
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
/** As many characters as there may be, where they are ASCII: a job's row holds them. */
const METADATA_MAX_BYTES = 10_240;

/** Labels of the caller's own, kept with the job and returned with it. */
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
 * Faults of the labels as a whole, told beside those of single ones. Of the object as it came: validation leaves `__proto__` out, and no label may
 * be lost in silence.
 */
export function metadataErrors(metadata: unknown): FieldError[] {
  const keys = Object.keys(asObject(metadata) ?? {});
  const fault = (message: string): FieldError[] => [{ field: 'metadata', message }];
  if (keys.length > METADATA_MAX_ENTRIES) return fault(`must have at most ${METADATA_MAX_ENTRIES} entries`);
  // A character is at most two units: what is longer need not be counted, nor copied for it.
  const isTooLong = (key: string) =>
    key.length > 2 * METADATA_MAX_KEY_CHARS || [...key].length > METADATA_MAX_KEY_CHARS;
  if (keys.some((key) => key.length === 0 || isTooLong(key)))
    return fault(`keys must be 1 to ${METADATA_MAX_KEY_CHARS} characters long`);
  if (keys.includes('__proto__')) return fault('must not have the key __proto__');
  const values = Object.values(asObject(metadata) ?? {});
  // What is wrong with single values is told beside this.
  if (values.some((value) => typeof value !== 'string' || value.length > 2 * METADATA_MAX_VALUE_CHARS)) return [];
  const isTooLarge = new TextEncoder().encode(JSON.stringify(metadata ?? {})).length > METADATA_MAX_BYTES;
  return isTooLarge ? fault(`must be at most ${METADATA_MAX_BYTES} bytes of JSON`) : [];
}

/** The body as an object, or undefined where it is anything else (an array, a string, null). */
export function asObject(body: unknown): Record<string, unknown> | undefined {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? (body as Record<string, unknown>)
    : undefined;
}

/**
 * Renames aliases to the names of the contract. The contract's own name wins where it carries a value; the alias stays beside it then.
 * @returns the renamed body, and the alias that each renamed field was sent under
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
