import { z } from '@hono/zod-openapi';
import type { FieldError, Parsed } from './errors.ts';

export const KEY_TEST_ANSWER = { status: 'OK', message: 'Your API key works.' } as const;

export const keyTestSchema = z
  .object({ status: z.literal('OK'), message: z.string() })
  .openapi('KeyTest', { example: KEY_TEST_ANSWER });

const usageKindSchema = z.enum(['diarize', 'transcription', 'voiceprint', 'identify', 'live']).openapi('UsageKind');

const amounts = {
  billedSeconds: z.number().openapi({
    description: 'Billed seconds of audio; for the kind transcription, the transcribed seconds of them',
  }),
  jobs: z.int().openapi({ description: 'Jobs that succeeded; for the kind live, streams' }),
  voiceprints: z.int().openapi({ description: 'Voiceprints created' }),
};

export const usageRowSchema = z
  .object({ date: z.iso.date().openapi({ description: 'Day in UTC' }), kind: usageKindSchema, ...amounts })
  .openapi('UsageRow');
export type UsageRow = z.infer<typeof usageRowSchema>;

export const usageSchema = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime().openapi({ description: 'First moment after the report' }),
    totals: z.object(amounts).openapi({ description: 'Sums without the rows of the kind transcription' }),
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
/** ISO 8601 allows datetimes without seconds. */
const isoDatetime = z.union([z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })]);
/**
 * Answers contain ISO 8601 times, whose years have four digits; a report may begin before and end after the requested
 * range.
 */
const [FIRST_YEAR, LAST_YEAR] = [1970, 9998];
const FIRST_MOMENT = Date.UTC(FIRST_YEAR, 0);
const END_OF_TIME = Date.UTC(LAST_YEAR + 1, 0);
export const NOT_A_TIME = 'must be an ISO 8601 date or a datetime with its zone, as 2026-01-31 or 2026-01-31T09:30:00Z';
/** For a `+` that was not escaped: query parsers decode it as a space. */
export const LOST_PLUS = 'contains a space: write the + of a time zone as %2B';
const OUT_OF_TIME = `must be in the years ${FIRST_YEAR} to ${LAST_YEAR}`;

/**
 * The bounds of a usage report. A date as `to` means the end of that day; without bounds the report covers the last 30
 * days.
 * @param now milliseconds since the Unix epoch
 */
export function parseUsageQuery(
  query: { readonly from?: string; readonly to?: string },
  now: number,
): Parsed<UsageQuery> {
  const to = query.to === undefined ? now : momentOf('to', query.to, DAY_MS);
  const from = query.from === undefined ? undefined : momentOf('from', query.from, 0);
  const errors = [from, to].filter((moment) => typeof moment === 'object');
  if (typeof to !== 'number' || typeof from === 'object') return { ok: false, errors };
  const range = { from: from ?? to - DEFAULT_DAYS * DAY_MS, to };
  const message = from === undefined ? undefined : rangeFault(range, query.to);
  return message === undefined ? { ok: true, value: range } : { ok: false, errors: [{ field: 'from', message }] };
}

/** @param toText `to` as the client sent it */
function rangeFault({ from, to }: UsageQuery, toText: string | undefined): string | undefined {
  if (toText === undefined && from > to) return 'must not be in the future where there is no `to`';
  // A date `to` means the end of its day, which equals `from` if that is the next day.
  if (from > to || (from === to && toText !== undefined && isDate(toText))) return 'must not be after `to`';
  if (to - from <= MAX_DAYS * DAY_MS) return undefined;
  return `must be at most ${MAX_DAYS} days before \`to\` (now, if not sent); ask for a longer time in parts`;
}

function momentOf(field: string, text: string, endOfDateMs: number): number | FieldError {
  const isDay = isDate(text);
  if (!isDay && !isDatetime(text)) return { field, message: / \d\d:\d\d$/.test(text) ? LOST_PLUS : NOT_A_TIME };
  const moment = Date.parse(isDay ? `${text}T00:00:00Z` : text);
  if (!(moment >= FIRST_MOMENT && moment < END_OF_TIME)) return { field, message: OUT_OF_TIME };
  return isDay ? moment + endOfDateMs : moment;
}

const isDate = (text: string) => isoDate.safeParse(text).success;
const isDatetime = (text: string) => isoDatetime.safeParse(text).success;

/** The report of a range with its rows. */
export function usageReport({ from, to }: UsageQuery, days: readonly UsageRow[]): Usage {
  // Transcribed seconds belong to jobs that are counted already.
  const counted = days.filter(({ kind }) => kind !== 'transcription');
  const sum = (name: keyof typeof amounts) => counted.reduce((total, row) => total + row[name], 0);
  return {
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    totals: { billedSeconds: roundSeconds(sum('billedSeconds')), jobs: sum('jobs'), voiceprints: sum('voiceprints') },
    days: [...days],
  };
}

/** Removes the rounding errors of sums. */
export function roundSeconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
