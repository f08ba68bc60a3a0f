import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Row, readRows, rowsTable, writeRows } from './formats.ts';

const row: Row = {
  container: 'MP3',
  coding: 'mp3, constant',
  rateHz: 44100,
  channels: 2,
  snrDb: 118,
  extraSamples: 0,
  offsetSamples: 0,
  speed: 300,
  shardDifference: 0,
};

it('reads the rows that were written', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rollcall-rows-'));
  const path = join(folder, 'rows.csv');
  const rows = [
    row,
    { ...row, coding: 'other', snrDb: Number.POSITIVE_INFINITY, extraSamples: -5, shardDifference: 0.25 },
  ];
  expect(readRows(path)).toEqual([]);
  writeRows(path, rows);
  expect(readRows(path)).toEqual(rows);
  rmSync(folder, { recursive: true });
});

it('shows the worst row of each coding in the table', () => {
  const text = rowsTable([
    row,
    { ...row, rateHz: 8000, snrDb: 90, extraSamples: -5, speed: 100, shardDifference: 0.1 },
  ]);
  expect(text.split('\n')[2]).toBe('| MP3 | mp3, constant | 8, 44.1 | 2 | 90 | -5 … 0 | 0 | 100 … 300 | -20 dB |');
});
