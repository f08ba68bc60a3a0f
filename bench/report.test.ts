import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Provenance, table, writeReport } from './report.ts';

const provenance = (date: string, coresInUse = 0): Provenance => ({
  date,
  commit: 'abc',
  machine: 'a machine',
  command: 'npm run bench',
  coresInUse,
});

describe('writeReport', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rollcall-report-'));
    path = join(folder, 'RESULTS.md');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('replaces the sections that were run and keeps the others, in a fixed order', () => {
    writeReport(path, new Map([['speed', { body: 'speed one', provenance: provenance('2001-01-01') }]]));
    writeReport(path, new Map([['accuracy', { body: 'accuracy one', provenance: provenance('2001-01-02') }]]));
    writeReport(path, new Map([['speed', { body: 'speed two', provenance: provenance('2001-01-03') }]]));
    const text = readFileSync(path, 'utf8');
    expect(text).not.toContain('speed one');
    expect(text.match(/^## .*/gm)).toEqual(['## Accuracy', '## Speed']);
    expect(text).toContain('Measured 2001-01-02 at commit abc');
    expect(text).toContain('Measured 2001-01-03 at commit abc');
    expect(text.match(/^# Results/gm)).toHaveLength(1);
  });

  it('says when the machine was busy', () => {
    writeReport(path, new Map([['start', { body: 'x', provenance: provenance('2001-01-01', 2.25) }]]));
    expect(readFileSync(path, 'utf8')).toContain('2.3 cores');
  });
});

it('table aligns numbers to the right', () => {
  expect(table(['name', 'DER'], [['a', '1.0']])).toBe('| name | DER |\n|---|--:|\n| a | 1.0 |');
});
