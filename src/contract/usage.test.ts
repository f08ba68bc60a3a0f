import { describe, expect, it } from 'vitest';
import { parseUsageQuery, usageReport } from './usage.ts';

const NOW = Date.parse('2026-03-15T12:00:00Z');
const DAY_MS = 24 * 3600 * 1000;
const at = Date.parse;

describe('the bounds of a usage report', () => {
  it.each([
    [{}, NOW - 30 * DAY_MS, NOW],
    [{ from: '2026-03-01' }, at('2026-03-01T00:00:00Z'), NOW],
    [{ to: '2026-03-01' }, at('2026-01-31T00:00:00Z'), at('2026-03-02T00:00:00Z')],
    [{ from: '2026-03-01', to: '2026-03-01' }, at('2026-03-01T00:00:00Z'), at('2026-03-02T00:00:00Z')],
    [{ from: '2024-01-01', to: '2024-12-31' }, at('2024-01-01T00:00:00Z'), at('2025-01-01T00:00:00Z')],
    [
      { from: '2026-03-01T02:00:00+02:00', to: '2026-03-01T00:00:00.000Z' },
      at('2026-03-01T00:00:00Z'),
      at('2026-03-01T00:00:00Z'),
    ],
  ])('%j', (query, from, to) => {
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
  ])('%j is refused', (query, fields) => {
    const parsed = parseUsageQuery(query, NOW);
    expect(!parsed.ok && parsed.errors.map(({ field }) => field)).toEqual(fields);
  });
});

it('adds up the days without a tail of digits', () => {
  const day = { date: '2026-03-01', jobs: 1, voiceprints: 0 };
  const report = usageReport({ from: NOW, to: NOW }, [
    { ...day, kind: 'diarize', billedSeconds: 20.1 },
    { ...day, kind: 'identify', billedSeconds: 20.2 },
    { ...day, kind: 'voiceprint', billedSeconds: 0, voiceprints: 1 },
  ]);
  expect(report.totals).toEqual({ billedSeconds: 40.3, jobs: 3, voiceprints: 1 });
});
