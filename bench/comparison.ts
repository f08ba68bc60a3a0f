import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { CliError, EXIT } from '../client/cli/run.ts';
import { type DiarizationError, pool, rate } from './score/der.ts';
import { SETTINGS, type Setting } from './speed.ts';

/**
 * What `candidates.ts` and `clusterings.ts` have in common: options of the form name=value, and the table that they
 * print.
 */
export const COMPARISON_HEAD =
  '| folder | what is compared | what | DER | missed | false alarm | confusion | right count | too many |\n' +
  '|---|---|---|--:|--:|--:|--:|--:|--:|\n';

/** DER and its components in percent, recordings with the right number of speakers, and with too many. */
export function comparisonRow(
  folder: string,
  label: string,
  what: string,
  errors: readonly DiarizationError[],
): string {
  const { der, miss, falseAlarm, confusion } = rate(pool(errors));
  const parts = [der, miss, falseAlarm, confusion].map((percent) => percent.toFixed(1));
  const right = errors.filter(({ hypothesisSpeakers, referenceSpeakers }) => hypothesisSpeakers === referenceSpeakers);
  const more = errors.filter(({ hypothesisSpeakers, referenceSpeakers }) => hypothesisSpeakers > referenceSpeakers);
  return `| ${[folder, label, what, ...parts, `${right.length} of ${errors.length}`, more.length].join(' | ')} |\n`;
}

/** Name of a folder in the table, with its parent: altered recordings have equal folders below each alteration. */
export function placeOf(folder: string): string {
  return resolve(folder).split('/').slice(-2).join('/');
}

export function named(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw new CliError(EXIT.usage, `${text} is no name=value`);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Parses settings separated by commas, for commander. */
export function settingsIn(text: string): readonly Setting[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !SETTINGS.some((setting) => setting === name));
  if (unknown.length > 0) {
    throw new InvalidArgumentError(`Unknown: ${unknown.join(', ')}. There are: ${SETTINGS.join(', ')}.`);
  }
  return SETTINGS.filter((setting) => names.includes(setting));
}

export function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}
