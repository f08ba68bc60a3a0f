import type { FieldError } from '../contract/errors.ts';
import { IDEMPOTENCY_KEY_HEADER, isIdempotencyKey } from '../contract/jobs.ts';
import type { CreateJob } from '../jobs/app-services.ts';
import type { AppContext } from '../middleware/context.ts';

/** The faults of the request's Idempotency-Key header, if it has one. */
export function idempotencyKeyErrors(c: AppContext): FieldError[] {
  const key = c.req.header(IDEMPOTENCY_KEY_HEADER);
  if (key === undefined || isIdempotencyKey(key)) return [];
  return [{ field: IDEMPOTENCY_KEY_HEADER, message: 'must be 1 to 255 printable ASCII characters' }];
}

/**
 * The key together with the hash of what it stands for. The hash covers the endpoint and the validated request, so that
 * another order of fields, a null or an alias is the same request, and the same body at another endpoint is not.
 */
export async function idempotency(
  c: AppContext,
  kind: CreateJob['kind'],
  request: object,
): Promise<CreateJob['idempotency']> {
  const key = c.req.header(IDEMPOTENCY_KEY_HEADER);
  if (key === undefined) return undefined;
  const text = new TextEncoder().encode(`${kind}\n${canonicalJson(request)}`);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
  return { key, bodyHash: Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('') };
}

/** JSON with the keys of every object in code point order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
