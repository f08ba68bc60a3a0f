import type { Jurisdiction } from '../../src/platform/jurisdiction.ts';
import { API, JOBS } from '../workers.ts';
import { BUCKET } from './config.ts';
import { nameIn } from './naming.ts';
import type { Ask } from './questions.ts';
import { putSecrets } from './secrets.ts';
import { mustWrangler } from './wrangler.ts';

export interface UploadCredentials {
  readonly root: string;
  readonly instance: string;
  readonly jurisdiction: Jurisdiction | undefined;
  readonly say: (line: string) => void;
  readonly ask: Ask;
}

/**
 * Asks for the bucket's credentials and stores all four secrets at once. With them, uploads and downloads bypass the
 * Worker and its limit of 100 MB.
 */
export async function setUpUploads({ root, instance, jurisdiction, say, ask }: UploadCredentials): Promise<void> {
  const accountId = await accountOf(root);
  const bucket = nameIn(instance, BUCKET);
  say(`1. Open https://dash.cloudflare.com/${accountId}/r2/api-tokens and create an account API token`);
  say(`   with "Object Read & Write" on the bucket ${bucket} only${jurisdiction ? ` (${jurisdiction})` : ''}.`);
  say('2. Copy its Access Key ID and its Secret Access Key here.');
  const R2_ACCESS_KEY_ID = await ask('Access Key ID: ');
  const R2_SECRET_ACCESS_KEY = await ask('Secret Access Key: ');
  if (!R2_ACCESS_KEY_ID || !R2_SECRET_ACCESS_KEY) throw new Error('Both are needed; nothing was changed.');
  const credentials = { R2_ACCESS_KEY_ID, R2_SECRET_ACCESS_KEY, R2_ACCOUNT_ID: accountId, R2_BUCKET_NAME: bucket };
  // JOBS first, because it reads the uploads to addresses that API signs.
  await putSecrets(root, instance, [JOBS, API], credentials);
  say('Uploads and downloads now go to the bucket directly. Web pages also need a CORS rule: docs/operations.md.');
}

async function accountOf(root: string): Promise<string> {
  const named = process.env.CLOUDFLARE_ACCOUNT_ID;
  if (named) return named;
  const { accounts } = JSON.parse(await mustWrangler(root, ['whoami', '--json'])) as { accounts: { id: string }[] };
  const [account, ...others] = accounts;
  if (!account || others.length > 0) throw new Error('The login has several accounts: set CLOUDFLARE_ACCOUNT_ID.');
  return account.id;
}
