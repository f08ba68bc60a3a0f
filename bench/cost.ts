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

export interface CostItem {
  readonly name: keyof typeof USD_PER_MILLION;
  /** How many of it an hour of audio takes. */
  readonly perHour: number;
  readonly usdPerHour: number;
}

/** What an hour of a job's audio costs on the platform, item by item, CPU first. @param cpuMs of the whole job */
export function costItems(
  cpuMs: number,
  { shards, audioSeconds }: Pick<JobTimes, 'shards' | 'audioSeconds'>,
): CostItem[] {
  const messages = shards + 2;
  const counts: Record<keyof typeof USD_PER_MILLION, number> = {
    'CPU milliseconds': cpuMs,
    requests: messages,
    'queue operations': messages * OPERATIONS_A_MESSAGE,
    'object writes': shards + 2,
    'object reads': shards * READS_A_SHARD,
  };
  return (Object.keys(counts) as (keyof typeof counts)[]).map((name) => {
    const perHour = counts[name] / (audioSeconds / 3600);
    return { name, perHour, usdPerHour: (perHour * USD_PER_MILLION[name]) / 1e6 };
  });
}
