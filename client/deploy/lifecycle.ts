import type { Jurisdiction } from '../../src/platform/jurisdiction.ts';
import { inJurisdiction } from './home.ts';
import { mustWrangler } from './wrangler.ts';

/**
 * Expiry of objects that the sweep missed. Recordings are needed for 52 hours, and longer while a job waits; outputs
 * for 24 hours. No job runs for seven days.
 */
export const LIFECYCLE_RULES = [
  { prefix: 'work/', days: 7 },
  { prefix: 'outputs/', days: 2 },
  { prefix: 'analyses/', days: 2 },
  { prefix: 'media/', days: 30 },
  { prefix: 'uploads/', days: 7 },
] as const;

type LifecycleRule = (typeof LIFECYCLE_RULES)[number];

const nameOf = ({ prefix, days }: LifecycleRule): string => `rollcall-${prefix.slice(0, -1)}-${days}d`;

/** Adds the missing rules and removes those of earlier versions; keeps other rules of the bucket. */
export async function ensureLifecycle(
  root: string,
  bucket: string,
  jurisdiction: Jurisdiction | undefined,
  say: (line: string) => void,
): Promise<void> {
  const where = inJurisdiction(jurisdiction);
  const listed = await mustWrangler(root, ['r2', 'bucket', 'lifecycle', 'list', bucket, ...where]);
  const names = [...listed.matchAll(/^name:\s+(\S+)$/gm)].map(([, name]) => name);
  for (const rule of LIFECYCLE_RULES) {
    const name = nameOf(rule);
    const former = names.filter((other) => other !== name && other.replace(/\d+d$/, '') === name.replace(/\d+d$/, ''));
    for (const other of former)
      await mustWrangler(root, ['r2', 'bucket', 'lifecycle', 'remove', bucket, '--name', other, ...where]);
    if (names.includes(name)) continue;
    say(`adding the lifecycle rule ${name}`);
    const args = [bucket, name, rule.prefix, '--expire-days', String(rule.days), '--force', ...where];
    await mustWrangler(root, ['r2', 'bucket', 'lifecycle', 'add', ...args]);
  }
}
