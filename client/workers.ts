/** A Worker of the service. */
export interface ServiceWorker {
  readonly name: string;
  /** Name of its wrangler file in the root of the repository. */
  readonly config: string;
  /** Whether it needs the variables of the transcription engines. */
  readonly transcribes: boolean;
  /** Whether it has a scheduled handler. */
  readonly sweeps: boolean;
}

/** Answers HTTP. Its wrangler file contains the migrations of the database. */
export const API: ServiceWorker = {
  name: 'rollcall',
  config: 'wrangler.toml',
  transcribes: true,
  sweeps: true,
};
/** Runs batch jobs. The only one that calls transcription engines and needs their keys. */
export const JOBS: ServiceWorker = {
  name: 'rollcall-jobs',
  config: 'wrangler.jobs.toml',
  transcribes: true,
  sweeps: true,
};
/** Runs live streams. */
export const LIVE: ServiceWorker = {
  name: 'rollcall-live',
  config: 'wrangler.live.toml',
  transcribes: false,
  sweeps: false,
};

/** In the order of deployment: a Worker can only be bound to Durable Objects of a deployed Worker. */
export const WORKERS = [JOBS, LIVE, API] as const;
