import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { table } from '../report.ts';
import type { Comparison } from './compare.ts';

/** One recording that was decoded both ways. */
export interface Row extends Comparison {
  readonly container: string;
  readonly coding: string;
  readonly rateHz: number;
  readonly channels: number;
  /** Seconds of audio a second of time. */
  readonly speed: number;
  /** Largest difference between the parts of a sharded read and the whole, relative to full scale. */
  readonly shardDifference: number;
}

const HEAD = 'container,coding,rate_hz,channels,snr_db,extra_samples,offset_samples,times_real_time,shard_difference';

const decibels = (value: number): string => (value === Number.POSITIVE_INFINITY ? 'exact' : value.toFixed(0));

/** All rows as comma-separated values, one a line. */
export function writeRows(path: string, rows: readonly Row[]): void {
  const lines = rows.map((row) =>
    [
      row.container,
      `"${row.coding}"`,
      row.rateHz,
      row.channels,
      decibels(row.snrDb),
      row.extraSamples,
      row.offsetSamples,
      Math.round(row.speed),
      row.shardDifference.toPrecision(3),
    ].join(','),
  );
  writeFileSync(path, `${[HEAD, ...lines].join('\n')}\n`);
}

/** What `writeRows` wrote; nothing where there is no such file. */
export function readRows(path: string): Row[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const match = /^([^,]+),"([^"]*)",(.+)$/.exec(line);
      if (!match) return [];
      const [rateHz, channels, snr, extraSamples, offsetSamples, speed, shardDifference] = match[3].split(',');
      return [
        {
          container: match[1],
          coding: match[2],
          rateHz: Number(rateHz),
          channels: Number(channels),
          snrDb: snr === 'exact' ? Number.POSITIVE_INFINITY : Number(snr),
          extraSamples: Number(extraSamples),
          offsetSamples: Number(offsetSamples),
          speed: Number(speed),
          shardDifference: Number(shardDifference),
        },
      ];
    });
}

/** One line for each coding in each container, with the worst of its rows. */
export function rowsTable(rows: readonly Row[]): string {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row]);
  const head = ['container', 'coding', 'kHz', 'channels', 'SNR dB', 'length ±', 'offset', '× real time', 'shards'];
  return table(head, [...groups.values()].map(summarise), 4);
}

/** Names a coding in a container. */
export const keyOf = ({ container, coding }: { readonly container: string; readonly coding: string }): string =>
  `${container} ${coding}`;

function range(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? String(low) : `${low} … ${high}`;
}

const list = (values: readonly number[]): string => [...new Set(values)].sort((a, b) => a - b).join(', ');

function summarise(rows: readonly Row[]): string[] {
  const shards = Math.max(...rows.map(({ shardDifference }) => shardDifference));
  return [
    rows[0].container,
    rows[0].coding,
    list(rows.map(({ rateHz }) => rateHz / 1000)),
    list(rows.map(({ channels }) => channels)),
    decibels(Math.min(...rows.map(({ snrDb }) => snrDb))),
    range(rows.map(({ extraSamples }) => extraSamples)),
    range(rows.map(({ offsetSamples }) => offsetSamples)),
    range(rows.map(({ speed }) => Math.round(speed))),
    shards === 0 ? '0' : `${(20 * Math.log10(shards)).toFixed(0)} dB`,
  ];
}
