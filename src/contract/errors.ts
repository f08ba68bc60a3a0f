import { z } from '@hono/zod-openapi';

/** One faulty field of a request. `field` is a dotted path from the root of the body, in the caller's spelling. */
const fieldErrorSchema = z
  .object({
    field: z.string().openapi({ example: 'transcriptionConfig.model' }),
    message: z.string().openapi({ example: 'must be one of: asr-tdt-0.6b-v3, asr-large-v3-turbo' }),
  })
  .openapi('FieldError');
export type FieldError = z.infer<typeof fieldErrorSchema>;

/** Body of every 400. */
export const validationErrorSchema = z
  .object({ message: z.literal('Invalid request'), errors: z.array(fieldErrorSchema).min(1) })
  .openapi('ValidationError');
export type ValidationError = z.infer<typeof validationErrorSchema>;

/** Body of every other error. */
export const apiErrorSchema = z.object({ requestId: z.uuid(), message: z.string() }).openapi('ApiError');
export type ApiError = z.infer<typeof apiErrorSchema>;

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly errors: readonly FieldError[] };

/** Maps a parsed value; errors stay as they are. */
export function mapParsed<T, U>(parsed: Parsed<T>, map: (value: T) => U): Parsed<U> {
  return parsed.ok ? { ok: true, value: map(parsed.value) } : parsed;
}

/** Longest key that an error repeats; a caller's key may have megabytes. */
const NAME_MAX_CHARS = 128;

/** Zod's issues in the form of the API: one entry per field, the first fault found in it. */
export function toFieldErrors(error: z.ZodError): FieldError[] {
  return onePerField(error.issues.map(({ path, message }) => toFieldError(path.map(String), message)));
}

function toFieldError(path: readonly string[], message: string): FieldError {
  const long = path.findIndex((name) => name.length > NAME_MAX_CHARS);
  if (long < 0) return { field: path.join('.') || 'body', message };
  const field = path.slice(0, long).join('.') || 'body';
  return { field, message: `has a key of more than ${NAME_MAX_CHARS} characters` };
}

/** Keeps the first entry of each field. */
export function onePerField(errors: readonly FieldError[]): FieldError[] {
  const seen = new Set<string>();
  return errors.filter(({ field }) => !seen.has(field) && seen.add(field));
}
