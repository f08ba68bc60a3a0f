import type { AppServices, FloodLimits } from '../jobs/app-services.ts';

/** Bindings of the platform's rate limiter (`[[ratelimits]]` in wrangler.toml); an absent one allows everything. */
export interface FloodLimiters {
  readonly client?: RateLimit;
  readonly key?: RateLimit;
}

/** `FloodLimits` over the platform's counters. If a counter fails, the request is allowed. */
export function createFloodLimits({ client, key }: FloodLimiters, log: AppServices['log']): FloodLimits {
  const allows = async (limiter: RateLimit | undefined, name: string): Promise<boolean> => {
    if (!limiter) return true;
    try {
      return (await limiter.limit({ key: name })).success;
    } catch (error) {
      log('warn', 'flood_limit_failed', { error: String(error) });
      return true;
    }
  };
  return {
    allowsClient: (address) => allows(client, networkOf(address)),
    allowsKey: (keyId) => allows(key, keyId),
  };
}

/** The first 64 bits of an IPv6 address: a client usually has a whole /64 network. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? [] : new Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
