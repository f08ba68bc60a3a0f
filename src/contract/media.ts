import { z } from '@hono/zod-openapi';
import { type Parsed, toFieldErrors } from './errors.ts';
import { asObject, requiredText } from './fields.ts';

export const MEDIA_SCHEME = 'media://';
const MEDIA_URL = /^media:\/\/[a-zA-Z0-9\-_./]+$/;
const MEDIA_URL_MAX_CHARS = 255;

/**
 * The name in a `media://NAME` address, without the scheme.
 * @returns undefined for an address that breaks the rules: other characters, `..`, more than 255 characters
 */
export function mediaName(url: string): string | undefined {
  if (url.length > MEDIA_URL_MAX_CHARS || !MEDIA_URL.test(url) || url.includes('..')) return undefined;
  return url.slice(MEDIA_SCHEME.length);
}

export const MEDIA_NAME_RULE =
  'must be media:// and a name of letters, digits and -_./ without "..", at most 255 characters in all';

export const mediaBodySchema = z
  .object({
    url: requiredText()
      .refine((url) => mediaName(url) !== undefined, MEDIA_NAME_RULE)
      .openapi({
        example: 'media://meetings/monday',
        description: 'Any name that you choose, without two dots in a row.',
        maxLength: MEDIA_URL_MAX_CHARS,
        pattern: '^media://(?!.*\\.\\.)[a-zA-Z0-9\\-_./]+$',
      }),
  })
  .openapi('MediaRequest');

export const mediaAddressSchema = z
  .object({ url: z.url().openapi({ description: 'Signed address; needs no Authorization header.' }) })
  .openapi('MediaAddress');

/**
 * Bytes of a recording. Without the `format`, client generators treat them as text; without a schema, they omit the
 * endpoint.
 */
export const rawBytesSchema = z.string().openapi({ format: 'binary' });

/** Reads the body of POST /v1/media/input and /v1/media/output. */
export function parseMediaBody(body: unknown): Parsed<{ readonly name: string }> {
  const object = asObject(body);
  if (!object) return { ok: false, errors: [{ field: 'body', message: 'must be a JSON object' }] };
  const parsed = mediaBodySchema.safeParse({ ...object, url: object.url ?? undefined });
  if (!parsed.success) return { ok: false, errors: toFieldErrors(parsed.error) };
  return { ok: true, value: { name: parsed.data.url.slice(MEDIA_SCHEME.length) } };
}
