import type { Edit } from './edits.ts';

/** The used part of the browser's `localStorage` and `sessionStorage`. */
export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** A job that this browser has started or opened. It does not need the page. */
export interface RememberedJob {
  readonly id: string;
  /** Name of the recording, for example of its file. */
  readonly name: string;
  /** URL of the recording: an address, or `media://` for an upload; undefined for a file sent in the request. */
  readonly url?: string;
  /** The user's changes of the result. */
  readonly edits?: readonly Edit[];
}

/** A person's voice, stored only in this browser. */
export interface Voice {
  readonly name: string;
  readonly voiceprint: string;
  readonly addedAt: string;
}

const JOBS = 'rollcall.jobs';
const VOICES = 'rollcall.voices';
/** A short list is enough: the service deletes results after a day. */
const MAX_JOBS = 50;
/** Limit of an identify job. */
export const MAX_VOICES = 50;

/** Data that the browser keeps between visits. The page works without them if the browser refuses to store them. */
export class Memory {
  /** @param open returns the store; may throw */
  constructor(private readonly open: () => Store) {}

  /** The newest first. */
  get jobs(): readonly RememberedJob[] {
    return this.read<RememberedJob>(JOBS);
  }

  job(id: string): RememberedJob | undefined {
    return this.jobs.find((job) => job.id === id);
  }

  /** Adds a job, or replaces the stored one with its id. */
  rememberJob(job: RememberedJob): void {
    const others = this.jobs.filter(({ id }) => id !== job.id);
    const isKnown = others.length < this.jobs.length;
    const jobs = isKnown ? this.jobs.map((known) => (known.id === job.id ? job : known)) : [job, ...others];
    this.write(JOBS, jobs.slice(0, MAX_JOBS));
  }

  get voices(): readonly Voice[] {
    return this.read<Voice>(VOICES);
  }

  /** Adds or replaces the voice of a name. @returns false if there are too many or the browser refuses to store it */
  rememberVoice(voice: Voice): boolean {
    const voices = [...this.voices.filter(({ name }) => name !== voice.name), voice];
    return voices.length <= MAX_VOICES && this.write(VOICES, voices);
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
