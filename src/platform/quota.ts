import { proxyDurable } from 'itty-durable';
import type { QuotaService } from '../jobs/app-services.ts';

/** Method of an account's object (`durable-objects/account-quota.ts`). */
export interface QuotaRpc {
  count(endpoint: string): { readonly count: number; readonly resetMs: number };
}

/** `QuotaService` over one Durable Object per account. */
export function createQuota(namespace: DurableObjectNamespace): QuotaService {
  // The library has no types for the class, which implements the same interface.
  const accounts: { get(accountId: string): Promised<QuotaRpc> } = proxyDurable(namespace, {
    name: 'ACCOUNT_QUOTA',
    parse: true,
  });
  return { count: (accountId, endpoint) => accounts.get(accountId).count(endpoint) };
}

/** The same methods, which return promises. */
type Promised<T> = {
  readonly [name in keyof T]: T[name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Result>
    : never;
};
