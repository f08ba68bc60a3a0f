import type { RememberedJob, Store } from './memory.ts';
import { plainKey } from './request.ts';

const KEY = 'rollcall.key';
const JOB = 'rollcall.job';

/**
 * Returns the key in an address like `http://127.0.0.1:8787/#key=…`, to which `npm start` links in a terminal. Browsers
 * do not send the fragment. Only on loopback hosts: on others, a link could set an attacker's key, and recordings would
 * go to the attacker's account.
 */
export function keyInFragment({ hostname, hash }: Pick<Location, 'hostname' | 'hash'>): string | undefined {
  if (!/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)) return undefined;
  return plainKey(new URLSearchParams(hash.replace(/^#/, '')).get('key') ?? '') || undefined;
}

/** Data that the tab keeps over a reload. The page works without them if the browser refuses to store them. */
export class Session {
  /** @param open returns the store; may throw */
  constructor(private readonly open: () => Store) {}

  get key(): string {
    return this.with((store) => store.getItem(KEY)) ?? '';
  }

  set key(key: string) {
    this.with((store) => (key === '' ? store.removeItem(KEY) : store.setItem(KEY, key)));
  }

  get job(): RememberedJob | undefined {
    const job = this.with((store) => JSON.parse(store.getItem(JOB) ?? '{}') as Partial<RememberedJob>) ?? {};
    const { id, name, url } = job;
    return id === undefined || name === undefined ? undefined : { id, name, ...(url !== undefined && { url }) };
  }

  set job(job: RememberedJob | undefined) {
    this.with((store) => (job ? store.setItem(JOB, JSON.stringify(job)) : store.removeItem(JOB)));
  }

  private with<T>(use: (store: Store) => T): T | undefined {
    try {
      return use(this.open());
    } catch {
      return undefined;
    }
  }
}
