import { SCOPES } from '../../src/jobs/app-services.ts';
import { createKey, ensureAccount } from '../accounts.ts';
import { runSqlOn } from '../local/database.ts';
import { loadSecrets, saveSecrets } from '../local/secrets.ts';
import type { LocalService } from '../local/service.ts';
import { RollcallClient } from '../sdk/client.ts';

/**
 * Returns the key of the account `local`, which has a subscription. A state folder keeps its key while it is valid.
 */
export async function localKey(service: LocalService, stateDir: string): Promise<string> {
  const secrets = loadSecrets(stateDir);
  if (secrets.localKey) {
    const test = await new RollcallClient({ url: service.url, key: secrets.localKey }).test();
    if (test.ok) return secrets.localKey;
  }
  const run = runSqlOn(service.db);
  const now = Date.now();
  const accountId = await ensureAccount(run, { name: 'local', subscribe: true }, now);
  const { token } = await createKey(run, { accountId, scopes: SCOPES, signingKey: secrets.signingKey }, now);
  saveSecrets(stateDir, { ...secrets, localKey: token });
  return token;
}
