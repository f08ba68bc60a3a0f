import { LOST_PLUS, NOT_A_TIME, roundSeconds, type Usage } from '../../src/contract/account.ts';
import type { FieldError } from '../../src/contract/errors.ts';
import { DEFAULT_RATE_LIMITS } from '../../src/jobs/app-services.ts';
import { signingVersions, WEBHOOK_SECRET_GRACE_MS } from '../../src/jobs/webhook-signature.ts';
import type { AccountRow, AccountUsageRow } from '../account-settings.ts';

const isoTime = (time: number): string => new Date(time).toISOString();

/** Formats a line of `account list`: name, credit, subscription, limits, time of creation. */
export function accountLine(account: AccountRow): string {
  const columns = [
    account.name,
    `${roundSeconds(account.creditSeconds)} s`,
    account.subscribed === 1 ? 'subscribed' : '-',
    `post ${account.postLimit ?? DEFAULT_RATE_LIMITS.post}`,
    `get ${account.getLimit ?? DEFAULT_RATE_LIMITS.get}`,
    isoTime(account.createdAt),
  ];
  return columns.join('  ');
}

/** Formats the lines of `account show`. */
export function accountDetails(account: AccountRow, now: number): string[] {
  const limit = (accountLimit: number | null, defaultLimit: number): string =>
    `${accountLimit ?? defaultLimit} requests a minute to each endpoint${accountLimit === null ? ' (default)' : ''}`;
  const { webhookSecretVersion: version, webhookSecretRotatedAt: rotatedAt } = account;
  const inGrace = rotatedAt !== null && signingVersions(version, rotatedAt, now).length > 1;
  const grace = inGrace
    ? `; version ${version - 1} also signs until ${isoTime(rotatedAt + WEBHOOK_SECRET_GRACE_MS)}`
    : '';
  return [
    `name: ${account.name}`,
    `id: ${account.id}`,
    `created: ${isoTime(account.createdAt)}`,
    `subscribed: ${account.subscribed === 1 ? 'yes' : 'no'}`,
    `credit: ${roundSeconds(account.creditSeconds)} s`,
    `post limit: ${limit(account.postLimit, DEFAULT_RATE_LIMITS.post)}`,
    `get limit: ${limit(account.getLimit, DEFAULT_RATE_LIMITS.get)}`,
    `webhook secret: version ${version}${grace}`,
  ];
}

/** Formats an invalid bound of `account usage` with the name of the option instead of the query field. */
export function usageFault({ field, message }: FieldError): string {
  const text = message === LOST_PLUS ? NOT_A_TIME : message.replaceAll('`to`', '--to').replace('not sent', 'not given');
  return `--${field} ${text}.`;
}

export const USAGE_FORMATS = ['text', 'csv', 'json'] as const;
export type UsageFormat = (typeof USAGE_FORMATS)[number];

const COLUMNS = ['account', 'date', 'kind', 'jobs', 'billedSeconds', 'voiceprints'] as const;

/** Formats `account usage` with a line for each account, day and kind: for several accounts, or for programs. */
export function usageExport(rows: readonly AccountUsageRow[], format: UsageFormat): string[] {
  if (format === 'json') return rows.map((row) => JSON.stringify(row));
  const table = [COLUMNS, ...rows.map((row) => COLUMNS.map((name) => String(row[name])))];
  // RFC 4180; only the name can need quotes.
  if (format === 'csv') return table.map((cells) => cells.map(csvCell).join(','));
  const widths = COLUMNS.map((_, i) => Math.max(...table.map((cells) => String(cells[i]).length)));
  return table.map((cells) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const csvCell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Formats the table of `account usage`: a line for each day and kind, then the totals. */
export function usageLines({ days, totals }: Usage): string[] {
  const line = (first: string, kind: string, row: Usage['totals']): string =>
    [
      first.padEnd(10),
      kind.padEnd(10),
      `${row.billedSeconds} s`.padStart(14),
      `${row.jobs} jobs`.padStart(10),
      `${row.voiceprints} voiceprints`.padStart(16),
    ].join('  ');
  return [...days.map((row) => line(row.date, row.kind, row)), line('total', '', totals)];
}
