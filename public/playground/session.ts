import { plainKey } from './request.ts';

/** A job that continues without the page. */
export interface KnownJob {
  readonly id: string;
  /** Name of the recording, such as that of its file. */
  readonly name: string;
  /** URL of the recording; undefined for a file that was sent in the request. */
  readonly url?: string;
}

/** The part of the browser's `sessionStorage` that is used. */
export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const KEY = 'rollcall.key';
const JOB = 'rollcall.job';

/**
 * The key in an address like `http://127.0.0.1:8787/#key=…`, which `npm start` links in a terminal. Browsers do not
 * send what is after `#`. Only for loopback hosts: elsewhere a link could put a stranger's key into the page, and recordings
 * into the stranger's account.
 */
export function keyInFragment({ hostname, hash }: Pick<Location, 'hostname' | 'hash'>): string | undefined {
  if (!/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)) return undefined;
  return plainKey(new URLSearchParams(hash.replace(/^#/, '')).get('key') ?? '') || undefined;
}

/** Data that the tab keeps over a reload. If the browser refuses to store it, the page works without this data. */
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
