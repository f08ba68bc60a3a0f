import { proxyDurable } from 'itty-durable';
import { z } from 'zod';
import type { QuotaService } from '../jobs/app-services.ts';

const countSchema = z.object({ count: z.int().positive(), resetMs: z.number() });

/** `QuotaService` over one Durable Object an account. */
export function createQuota(namespace: DurableObjectNamespace): QuotaService {
  const accounts = proxyDurable(namespace, { name: 'ACCOUNT_QUOTA', parse: true });
  return {
    count: async (accountId, endpoint) => countSchema.parse(await accounts.get(accountId).count(endpoint)),
  };
}
