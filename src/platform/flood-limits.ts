import type { AppServices, FloodLimits } from '../jobs/app-services.ts';

/** Bindings of the platform's rate limiter (`[[ratelimits]]` in wrangler.toml); absent ones limit nothing. */
export interface FloodLimiters {
  readonly client?: RateLimit;
  readonly key?: RateLimit;
}

/** `FloodLimits` over the platform's counters. A counter that fails lets the request pass: it protects, it is no gate. */
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

/** Of an IPv6 address its first 64 bits: whoever has one address of such a network has them all. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? [] : new Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
