/** One of the Workers that the service is made of. */
export interface ServiceWorker {
  readonly name: string;
  /** Its wrangler file, in the root of the repository. */
  readonly config: string;
  /** Whether it has to know the transcription engines. */
  readonly transcribes: boolean;
  /** Whether it has a scheduled handler. */
  readonly sweeps: boolean;
}

/** Answers HTTP. Its wrangler file names the migrations of the database. */
export const API: ServiceWorker = {
  name: 'rollcall',
  config: 'wrangler.toml',
  transcribes: true,
  sweeps: true,
};
/** Batch jobs. Only this one sends audio to transcription engines, and so needs their keys. */
export const JOBS: ServiceWorker = {
  name: 'rollcall-jobs',
  config: 'wrangler.jobs.toml',
  transcribes: true,
  sweeps: true,
};
/** Live streams. */
export const LIVE: ServiceWorker = {
  name: 'rollcall-live',
  config: 'wrangler.live.toml',
  transcribes: false,
  sweeps: false,
};

/** In the order of their deployment: a Worker can only be bound to objects of one that is there already. */
export const WORKERS = [JOBS, LIVE, API] as const;
