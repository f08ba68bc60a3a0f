import type { Edit } from './edits.ts';

/** As much of the browser's `localStorage` as is used. */
export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** A job that was begun in this browser, or opened in it. */
export interface RememberedJob {
  readonly id: string;
  /** What the person knows the recording by. */
  readonly name: string;
  /** What the service reads it from: an address, or `media://` for an upload. */
  readonly url?: string;
  /** Changes of the person to the result. */
  readonly edits?: readonly Edit[];
}

/** A person's voice, kept in this browser alone. */
export interface Voice {
  readonly name: string;
  readonly voiceprint: string;
  readonly addedAt: string;
}

const JOBS = 'rollcall.jobs';
const VOICES = 'rollcall.voices';
/** The service forgets a job's result after a day. */
const MOST_JOBS = 50;
/** What an identify job takes. */
export const MOST_VOICES = 50;

/** What this browser remembers between visits. Browsers may refuse to keep it; then the page works without. */
export class Memory {
  /** @param open gives the store; may throw */
  constructor(private readonly open: () => Store) {}

  /** The newest first. */
  get jobs(): readonly RememberedJob[] {
    return this.read<RememberedJob>(JOBS);
  }

  job(id: string): RememberedJob | undefined {
    return this.jobs.find((job) => job.id === id);
  }

  /** Adds a job, or replaces what is known of it. */
  rememberJob(job: RememberedJob): void {
    const others = this.jobs.filter(({ id }) => id !== job.id);
    const isKnown = others.length < this.jobs.length;
    const jobs = isKnown ? this.jobs.map((known) => (known.id === job.id ? job : known)) : [job, ...others];
    this.write(JOBS, jobs.slice(0, MOST_JOBS));
  }

  get voices(): readonly Voice[] {
    return this.read<Voice>(VOICES);
  }

  /** A voice of the same name is replaced. @returns false where there are too many, or the browser keeps nothing */
  rememberVoice(voice: Voice): boolean {
    const voices = [...this.voices.filter(({ name }) => name !== voice.name), voice];
    return voices.length <= MOST_VOICES && this.write(VOICES, voices);
  }

  forgetVoice(name: string): void {
    const voices = this.voices.filter((voice) => voice.name !== name);
    this.write(VOICES, voices);
  }

  private read<T>(key: string): readonly T[] {
    try {
      const list: unknown = JSON.parse(this.open().getItem(key) ?? '[]');
      return Array.isArray(list) ? list : [];
    } catch {
      return [];
    }
  }

  private write(key: string, list: readonly unknown[]): boolean {
    try {
      if (list.length === 0) this.open().removeItem(key);
      else this.open().setItem(key, JSON.stringify(list));
      return true;
    } catch {
      return false;
    }
  }
}
