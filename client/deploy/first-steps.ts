import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SCOPES } from '../../src/jobs/app-services.ts';
import { createKey, ensureAccount, revokeKey } from '../accounts.ts';
import type { RunSql } from '../local/database.ts';
import { WORKERS } from '../workers.ts';
import { nameIn } from './naming.ts';
import { smokeTest } from './smoke.ts';

const FIRST_ACCOUNT = 'main';
const SMOKE_TEST_ACCOUNT = 'smoke-test';
const SMOKE_TEST_KEY_MS = 15 * 60_000;

export interface Deployed {
  readonly root: string;
  readonly instance: string;
  /** Undefined if wrangler prints no address, for example for a route. */
  readonly address: string | undefined;
  /** Undefined if this machine has no copy; then no key can be signed. */
  readonly signingKey: string | undefined;
  readonly run: RunSql;
  readonly say: (line: string) => void;
  /** Shorter timeout for tests. */
  readonly patienceMs?: number;
}

/**
 * Creates the first key of a service without keys, prints the addresses, and tests the service.
 *
 * @throws if the service does not work
 */
export async function takeFirstSteps(deployed: Deployed): Promise<void> {
  const { address, signingKey, run, say, instance } = deployed;
  if (signingKey) await makeFirstKey(run, signingKey, say);
  if (!address) {
    return say('There is no workers.dev address: the service is at the routes of wrangler.toml, and was not tested.');
  }
  say(`address: ${address}`);
  say(`playground: ${address}/`);
  if (!signingKey) {
    return say('ROLLCALL_SIGNING_KEY is not set and there is no copy of it here: the service was not tested.');
  }
  try {
    say(`smoke test: ${await withTestKey(run, signingKey, (key) => tryService(deployed, address, key))}`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const rollbacks = WORKERS.map(({ name }) => `npx wrangler rollback --name ${nameIn(instance, name)}`);
    throw new Error(
      `The deployed service does not work: ${reason}. ` +
        `To return to the previous version: ${rollbacks.reverse().join(' && ')}`,
    );
  }
}

async function makeFirstKey(run: RunSql, signingKey: string, say: Deployed['say']): Promise<void> {
  const [{ keys }] = await run<{ keys: number }>('SELECT COUNT(*) AS keys FROM api_keys');
  if (keys > 0) return;
  const now = Date.now();
  const accountId = await ensureAccount(run, { name: FIRST_ACCOUNT, subscribe: true }, now);
  const { token } = await createKey(run, { accountId, scopes: SCOPES, signingKey }, now);
  say(`key: ${token}`);
  say(`The key is not stored. Its account is ${FIRST_ACCOUNT}, with a subscription.`);
}

function tryService({ root, patienceMs }: Deployed, address: string, key: string): Promise<string> {
  const recording = new Uint8Array(readFileSync(join(root, 'test', 'fixtures', 'conversation.mp3')));
  return smokeTest({ address, key, recording, patienceMs });
}

async function withTestKey<T>(run: RunSql, signingKey: string, work: (key: string) => Promise<T>): Promise<T> {
  const now = Date.now();
  const accountId = await ensureAccount(run, { name: SMOKE_TEST_ACCOUNT, subscribe: true }, now);
  const expiresAt = now + SMOKE_TEST_KEY_MS;
  const { keyId, token } = await createKey(run, { accountId, scopes: SCOPES, signingKey, expiresAt }, now);
  try {
    return await work(token);
  } finally {
    await revokeKey(run, keyId, Date.now());
  }
}
