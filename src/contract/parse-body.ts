import type { z } from '@hono/zod-openapi';
import { type FieldError, onePerField, type Parsed, toFieldErrors } from './errors.ts';
import { asObject, renameAliases } from './fields.ts';

/** Spellings of fields that clients in the wild send. */
const ALIASES = {
  transcription_config: 'transcriptionConfig',
  turn_level_confidence: 'turnLevelConfidence',
} as const;

/**
 * Reads the body of a request. Finds every faulty field at once; errors name fields as the caller spelled them.
 *
 * @param between finds further faults; is given the fields that are right by themselves, and all fields as they came. Where a
 * field has a fault already, that one is told.
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
  const errors = onePerField([...faults, ...between(without(named, faults), named)]);
  if (!parsed.success || errors.length > 0) return { ok: false, errors: errors.map((error) => asSent(error, sentAs)) };
  return { ok: true, value: parsed.data };
}

/** The body's fields that are right by themselves. */
function without(body: Record<string, unknown>, faults: readonly FieldError[]): Record<string, unknown> {
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
