import { proxyDurable } from 'itty-durable';
import type { QuotaService } from '../jobs/app-services.ts';

/** The method of an account's object that is called from outside. */
export interface QuotaRpc {
  count(endpoint: string): { readonly count: number; readonly resetMs: number };
}

/** `QuotaService` over one Durable Object an account. */
export function createQuota(namespace: DurableObjectNamespace): QuotaService {
  // The library's types say nothing of the class: `durable-objects/account-quota.ts` is held to the same interface.
  const accounts: { get(accountId: string): Promised<QuotaRpc> } = proxyDurable(namespace, {
    name: 'ACCOUNT_QUOTA',
    parse: true,
  });
  return { count: (accountId, endpoint) => accounts.get(accountId).count(endpoint) };
}

/** The methods of an object, as they are called from elsewhere. */
type Promised<T> = {
  readonly [name in keyof T]: T[name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Result>
    : never;
};
