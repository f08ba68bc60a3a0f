import { plainKey } from './request.ts';

/** A job that goes on without the page. */
export interface KnownJob {
  readonly id: string;
  /** What the person knows the recording by. */
  readonly name: string;
  /** What the service reads it from; unknown of a file that went along with the request. */
  readonly url?: string;
}

/** As much of the browser's `sessionStorage` as is used. */
export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const KEY = 'rollcall.key';
const JOB = 'rollcall.job';

/**
 * The key in an address like `http://127.0.0.1:8787/#key=…`, which `npm start` prints. Browsers keep what is after `#` to themselves.
 * Only on this very machine: elsewhere a link could put a stranger's key into the page, and recordings into their account.
 */
export function keyInFragment({ hostname, hash }: Pick<Location, 'hostname' | 'hash'>): string | undefined {
  if (!/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)) return undefined;
  return plainKey(new URLSearchParams(hash.replace(/^#/, '')).get('key') ?? '') || undefined;
}

/** What outlives a reload of the tab, and ends with the tab. Browsers may refuse to keep it; then the page goes on without. */
export class Session {
  /** @param open gives the store; may throw */
  constructor(private readonly open: () => Store) {}

  get key(): string {
    return this.with((store) => store.getItem(KEY)) ?? '';
  }

  set key(key: string) {
    this.with((store) => (key === '' ? store.removeItem(KEY) : store.setItem(KEY, key)));
  }

  get job(): KnownJob | undefined {
    const { id, name, url } = this.with((store) => JSON.parse(store.getItem(JOB) ?? '{}') as Partial<KnownJob>) ?? {};
    return id === undefined || name === undefined ? undefined : { id, name, ...(url !== undefined && { url }) };
  }

  set job(job: KnownJob | undefined) {
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
