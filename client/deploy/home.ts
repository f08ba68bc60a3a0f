import { JURISDICTIONS, type Jurisdiction } from '../../src/platform/jurisdiction.ts';
import { wrangler } from './wrangler.ts';

/** The jurisdiction of a bucket; undefined for a bucket without one. */
export interface BucketHome {
  readonly jurisdiction: Jurisdiction | undefined;
}

/** Returns the arguments for wrangler's commands on resources in a jurisdiction. */
export const inJurisdiction = (jurisdiction: Jurisdiction | undefined): string[] =>
  jurisdiction ? ['--jurisdiction', jurisdiction] : [];

/** Finds a bucket in any jurisdiction; each has its own names. @returns undefined if there is none */
export async function findBucket(root: string, bucket: string): Promise<BucketHome | undefined> {
  for (const jurisdiction of [undefined, ...JURISDICTIONS]) {
    const { code } = await wrangler(root, ['r2', 'bucket', 'info', bucket, ...inJurisdiction(jurisdiction)]);
    if (code === 0) return { jurisdiction };
  }
  return undefined;
}

/**
 * Returns the jurisdiction of a deployment: that of an existing bucket, whose data cannot move, or the requested one.
 *
 * @throws if an existing bucket has another jurisdiction than the requested one
 */
export function chooseJurisdiction(
  home: BucketHome | undefined,
  requested: Jurisdiction | undefined,
): Jurisdiction | undefined {
  if (home && requested && home.jurisdiction !== requested) {
    const where = home.jurisdiction ? `in the jurisdiction ${home.jurisdiction}` : 'without a jurisdiction';
    throw new Error(`The bucket exists ${where}, which cannot be changed. Use another --name for ${requested}.`);
  }
  return home ? home.jurisdiction : requested;
}

/** Sets the jurisdiction of the bucket and of the Durable Objects in a wrangler file. */
export function placeConfig(toml: string, jurisdiction: Jurisdiction | undefined): string {
  if (!jurisdiction) return toml;
  return toml
    .replace(/^bucket_name = .*$/gm, (line) => `${line}\njurisdiction = "${jurisdiction}"`)
    .replace(/^\[vars\]$/m, (line) => `${line}\nJURISDICTION = "${jurisdiction}"`);
}
