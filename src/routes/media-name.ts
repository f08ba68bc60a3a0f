import { parseMediaBody } from '../contract/media.ts';
import type { AppContext } from '../middleware/context.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import type { Refusal } from '../middleware/refusals.ts';

/** The name in the body of a request for an address, or what the request is refused for. */
export async function readMediaName(
  c: AppContext,
): Promise<{ readonly ok: true; readonly name: string } | { readonly ok: false; readonly error: Refusal }> {
  const body = await readJsonBody(c);
  if (!body.ok) return body;
  const parsed = parseMediaBody(body.value);
  if (!parsed.ok) return { ok: false, error: { kind: 'invalid', errors: parsed.errors } };
  return { ok: true, name: parsed.value.name };
}
