import { afterEach, beforeEach, expect, it } from 'vitest';
import { workPrefix } from '../../src/jobs/work-keys.ts';
import { MEDIA_TTL_MS } from '../../src/platform/media-store.ts';
import { root } from '../../test/helpers/local-process.ts';
import { startCloudflareApi } from './cloudflare-api.fixture.ts';
import { BUCKET } from './config.ts';
import { ensureLifecycle, LIFECYCLE_RULES } from './lifecycle.ts';

interface Rule {
  readonly id: string;
  readonly enabled: boolean;
  readonly conditions: { readonly prefix?: string };
  readonly deleteObjectsTransition?: { readonly condition: { readonly type: string; readonly maxAge: number } };
}

/** Rules of the account's bucket. */
let rules: Rule[];
let stop: () => void;

beforeEach(async () => {
  rules = [];
  stop = await startCloudflareApi(({ url, method }, body) => {
    if (url !== '/accounts/account/r2/buckets/rollcall/lifecycle') return undefined;
    if (method === 'PUT') rules = JSON.parse(body).rules;
    return { status: 200, body: { result: { rules } } };
  });
});
afterEach(() => stop());

it('adds a rule for each prefix, replaces rules of earlier versions and keeps other rules', {
  timeout: 60_000,
}, async () => {
  const own = { id: 'own', enabled: true, conditions: { prefix: 'archive/' } };
  const former = { id: 'rollcall-media-3d', enabled: true, conditions: { prefix: 'media/' } };
  rules = [own, former];
  const output: string[] = [];
  const ensure = () => ensureLifecycle(root, BUCKET, undefined, (line) => output.push(line));
  await ensure();
  const DAY_SECONDS = 24 * 3600;
  expect(rules).toMatchObject([
    own,
    ...LIFECYCLE_RULES.map(({ prefix, days }) => ({
      enabled: true,
      conditions: { prefix },
      deleteObjectsTransition: { condition: { type: 'Age', maxAge: days * DAY_SECONDS } },
    })),
  ]);
  expect(output).toHaveLength(LIFECYCLE_RULES.length);
  await ensure();
  expect([rules.length, output.length]).toEqual([LIFECYCLE_RULES.length + 1, LIFECYCLE_RULES.length]);
});

it('deletes objects later than the sweep', () => {
  const HOUR_MS = 3600 * 1000;
  const ageMs = (prefix: string) => (LIFECYCLE_RULES.find((rule) => rule.prefix === prefix)?.days ?? 0) * 24 * HOUR_MS;
  // Two hours for accepted jobs, two for presigned uploads, and one for the sweep.
  expect(ageMs('media/')).toBeGreaterThan(MEDIA_TTL_MS + 5 * HOUR_MS);
  expect(ageMs('outputs/')).toBeGreaterThan(25 * HOUR_MS);
  expect(ageMs('analyses/')).toBe(ageMs('outputs/'));
});

it('never deletes models', () => {
  const prefixes = LIFECYCLE_RULES.map(({ prefix }) => prefix);
  expect(prefixes.some((prefix) => 'models/x'.startsWith(prefix))).toBe(false);
  expect(prefixes.filter((prefix) => workPrefix('job').startsWith(prefix))).toEqual(['work/']);
});
