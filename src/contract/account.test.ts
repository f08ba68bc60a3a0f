import { describe, expect, it } from 'vitest';
import { parseUsageQuery, usageReport, usageSchema } from './account.ts';

const NOW = Date.parse('2026-03-15T12:00:00Z');
const DAY_MS = 24 * 3600 * 1000;
const at = Date.parse;

describe('parseUsageQuery', () => {
  it.each([
    [{}, NOW - 30 * DAY_MS, NOW],
    [{ from: '2026-03-01' }, at('2026-03-01T00:00:00Z'), NOW],
    [{ to: '2026-03-01' }, at('2026-01-31T00:00:00Z'), at('2026-03-02T00:00:00Z')],
    [{ from: '2026-03-01', to: '2026-03-01' }, at('2026-03-01T00:00:00Z'), at('2026-03-02T00:00:00Z')],
    [{ from: '2024-01-01', to: '2024-12-31' }, at('2024-01-01T00:00:00Z'), at('2025-01-01T00:00:00Z')],
    [{ from: '2026-03-01T00:00Z', to: '2026-03-02T02:30+02:00' }, at('2026-03-01T00:00Z'), at('2026-03-02T00:30Z')],
    [
      { from: '2026-03-01T02:00:00+02:00', to: '2026-03-01T00:00:00.000Z' },
      at('2026-03-01T00:00:00Z'),
      at('2026-03-01T00:00:00Z'),
    ],
  ])('reads the range of %j', (query, from, to) => {
    expect(parseUsageQuery(query, NOW)).toEqual({ ok: true, value: { from, to } });
  });

  it.each([
    [{ from: '', to: 'yesterday' }, ['from', 'to']],
    [{ from: '2026-02-30' }, ['from']],
    [{ to: '2026-03-01T00:00:00' }, ['to']],
    [{ from: '2026-03-16' }, ['from']],
    [{ from: '2026-03-02', to: '2026-03-01T12:00:00Z' }, ['from']],
    [{ from: '2023-12-31', to: '2024-12-31' }, ['from']],
    [{ from: '1700000000000' }, ['from']],
    [{ from: '2026-03-02', to: '2026-03-01' }, ['from']],
    [{ to: '9999-12-31' }, ['to']],
    [{ from: '0000-01-01', to: '9999-12-31T23:59:59Z' }, ['from', 'to']],
  ])('refuses %j', (query, fields) => {
    const parsed = parseUsageQuery(query, NOW);
    expect(!parsed.ok && parsed.errors.map(({ field }) => field)).toEqual(fields);
  });
});

const messageOf = (query: { from?: string; to?: string }) => {
  const parsed = parseUsageQuery(query, NOW);
  return parsed.ok ? '' : parsed.errors.map(({ message }) => message).join('; ');
};

it('names the rule that a range breaks', () => {
  expect(messageOf({ to: '9999-12-31' })).toBe('must be in the years 1970 to 9998');
  expect(messageOf({ from: '1969-12-31' })).toBe('must be in the years 1970 to 9998');
  expect(messageOf({ from: '2026-03-16' })).toBe('must not be in the future where there is no `to`');
  expect(messageOf({ from: '2026-03-02', to: '2026-03-01' })).toBe('must not be after `to`');
  expect(messageOf({ from: '2020-01-01' })).toMatch(/^must be at most 366 days before `to` \(now, if not sent\)/);
  expect(messageOf({ from: '2026-01-01T00:00:00 01:00' })).toMatch(/%2B/);
  expect(messageOf({ from: '2026/01/01' })).toMatch(/^must be an ISO 8601 date/);
});

it('reports the first and last accepted day in ISO 8601', () => {
  for (const day of ['1970-01-01', '9998-12-31']) {
    const parsed = parseUsageQuery({ to: day }, NOW);
    const report = usageReport(parsed.ok ? parsed.value : { from: Number.NaN, to: Number.NaN }, []);
    expect(usageSchema.safeParse(report).error, day).toBeUndefined();
  }
});

it('sums days without floating-point residue', () => {
  const day = { date: '2026-03-01', jobs: 1, voiceprints: 0 };
  const report = usageReport({ from: NOW, to: NOW }, [
    { ...day, kind: 'diarize', billedSeconds: 20.1 },
    { ...day, kind: 'identify', billedSeconds: 20.2 },
    { ...day, kind: 'voiceprint', billedSeconds: 0, voiceprints: 1 },
  ]);
  expect(report.totals).toEqual({ billedSeconds: 40.3, jobs: 3, voiceprints: 1 });
});
