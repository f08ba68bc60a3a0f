import { z } from '@hono/zod-openapi';
import type { FieldError, Parsed } from './errors.ts';

const usageKindSchema = z.enum(['diarize', 'voiceprint', 'identify', 'live']).openapi('UsageKind');

const amounts = {
  billedSeconds: z.number().openapi({ description: 'Seconds of audio that were billed' }),
  jobs: z.int().openapi({ description: 'Jobs that succeeded; of kind live, streams' }),
  voiceprints: z.int().openapi({ description: 'Voiceprints that were made' }),
};

export const usageRowSchema = z
  .object({ date: z.iso.date().openapi({ description: 'Day in UTC' }), kind: usageKindSchema, ...amounts })
  .openapi('UsageRow');
export type UsageRow = z.infer<typeof usageRowSchema>;

export const usageSchema = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime().openapi({ description: 'The first moment that is not covered' }),
    totals: z.object(amounts),
    days: z.array(usageRowSchema),
  })
  .openapi('Usage');
export type Usage = z.infer<typeof usageSchema>;

const DAY_MS = 24 * 3600 * 1000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;

/** The time from `from` up to, not including, `to`; milliseconds since the Unix epoch. */
export interface UsageQuery {
  readonly from: number;
  readonly to: number;
}

const isoDate = z.iso.date();
const isoDatetime = z.iso.datetime({ offset: true });
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59Z');
const NOT_A_TIME = 'must be an ISO 8601 date or a datetime with its zone, as 2026-01-31 or 2026-01-31T09:30:00Z';

/**
 * The bounds of a usage report. A date as `to` means the end of that day; without bounds the report covers the last 30 days.
 * @param now milliseconds since the Unix epoch
 */
export function parseUsageQuery(
  query: { readonly from?: string; readonly to?: string },
  now: number,
): Parsed<UsageQuery> {
  const to = query.to === undefined ? now : momentOf(query.to, DAY_MS);
  const from = query.from === undefined ? (to ?? now) - DEFAULT_DAYS * DAY_MS : momentOf(query.from, 0);
  const errors: FieldError[] = [];
  if (from === undefined) errors.push({ field: 'from', message: NOT_A_TIME });
  if (to === undefined) errors.push({ field: 'to', message: NOT_A_TIME });
  if (from === undefined || to === undefined) return { ok: false, errors };
  if (to > LAST_MOMENT) errors.push({ field: 'to', message: 'must be before the year 10000' });
  if (from > to) errors.push({ field: 'from', message: 'must not be after `to`' });
  if (to - from > MAX_DAYS * DAY_MS)
    errors.push({ field: 'from', message: `must be at most ${MAX_DAYS} days before the end` });
  return errors.length === 0 ? { ok: true, value: { from, to } } : { ok: false, errors };
}

function momentOf(text: string, endOfDateMs: number): number | undefined {
  if (isoDate.safeParse(text).success) return Date.parse(`${text}T00:00:00Z`) + endOfDateMs;
  return isoDatetime.safeParse(text).success ? Date.parse(text) : undefined;
}

/** The answer for a range and what was found in it. */
export function usageReport({ from, to }: UsageQuery, days: readonly UsageRow[]): Usage {
  const sum = (name: keyof typeof amounts) => days.reduce((total, row) => total + row[name], 0);
  return {
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    totals: { billedSeconds: roundSeconds(sum('billedSeconds')), jobs: sum('jobs'), voiceprints: sum('voiceprints') },
    days: [...days],
  };
}

/** Sums of fractions come out with a tail of digits that nobody was billed for. */
export function roundSeconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
