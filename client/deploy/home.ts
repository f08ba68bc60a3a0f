import { JURISDICTIONS, type Jurisdiction } from '../../src/platform/jurisdiction.ts';
import { wrangler } from './wrangler.ts';

/** Where a bucket is; `jurisdiction` undefined where it may be anywhere. */
export interface BucketHome {
  readonly jurisdiction: Jurisdiction | undefined;
}

/** Arguments that make wrangler look for a bucket, or create one, there. */
export const inJurisdiction = (jurisdiction: Jurisdiction | undefined): string[] =>
  jurisdiction ? ['--jurisdiction', jurisdiction] : [];

/** Looks for a bucket in every jurisdiction: each of them has its own names. Undefined where there is none. */
export async function findBucket(root: string, bucket: string): Promise<BucketHome | undefined> {
  for (const jurisdiction of [undefined, ...JURISDICTIONS]) {
    const { code } = await wrangler(root, ['r2', 'bucket', 'info', bucket, ...inJurisdiction(jurisdiction)]);
    if (code === 0) return { jurisdiction };
  }
  return undefined;
}

/**
 * The jurisdiction of a deployment. It is that of the bucket, once there is one: what is stored cannot move.
 *
 * @param wanted of the command line
 * @throws where that is another
 */
export function chooseJurisdiction(
  home: BucketHome | undefined,
  wanted: Jurisdiction | undefined,
): Jurisdiction | undefined {
  if (home && wanted && home.jurisdiction !== wanted) {
    const where = home.jurisdiction ? `in the jurisdiction ${home.jurisdiction}` : 'without a jurisdiction';
    throw new Error(`The bucket is there already, ${where}; that is chosen once. Use another --name for ${wanted}.`);
  }
  return home ? home.jurisdiction : wanted;
}

/** A wrangler file for a jurisdiction: the bucket that is bound, and the variable for objects that the Worker calls. */
export function placeConfig(toml: string, jurisdiction: Jurisdiction | undefined): string {
  if (!jurisdiction) return toml;
  return toml
    .replace(/^bucket_name = .*$/gm, (line) => `${line}\njurisdiction = "${jurisdiction}"`)
    .replace(/^\[vars\]$/m, (line) => `${line}\nJURISDICTION = "${jurisdiction}"`);
}
