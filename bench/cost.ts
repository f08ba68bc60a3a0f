import type { JobTimes } from './stages.ts';

/** The day on which the prices below held. */
export const CPU_DAY = '2026-11-21';

/** List prices of the paid plan beyond what it includes, USD a million. */
export const USD_PER_MILLION = {
  'CPU milliseconds': 0.02,
  requests: 0.3,
  'queue operations': 0.4,
  'object writes': 4.5,
  'object reads': 0.36,
} as const;

/** A message is written, read and deleted. */
const OPERATIONS_A_MESSAGE = 3;
/** Its part twice and its plan when it is made; opened, its embeddings, and all of it twice when a job is assembled that joins speakers. */
export const READS_A_SHARD = 7;

/** In USD. */
export interface HourlyCost {
  readonly cpu: number;
  /** Requests, queue operations, reads and writes of objects. */
  readonly rest: number;
}

/** What an hour of a job's audio costs on the platform. @param cpuMs of the whole job */
export function costPerHour(
  cpuMs: number,
  { shards, audioSeconds }: Pick<JobTimes, 'shards' | 'audioSeconds'>,
): HourlyCost {
  const messages = shards + 2;
  const rest =
    messages * USD_PER_MILLION.requests +
    messages * OPERATIONS_A_MESSAGE * USD_PER_MILLION['queue operations'] +
    (shards + 2) * USD_PER_MILLION['object writes'] +
    shards * READS_A_SHARD * USD_PER_MILLION['object reads'];
  const millionHours = (1e6 * audioSeconds) / 3600;
  return { cpu: (cpuMs * USD_PER_MILLION['CPU milliseconds']) / millionHours, rest: rest / millionHours };
}
