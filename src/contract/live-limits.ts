/** Maximum number of speakers of a stream (contract §7). */
export const MAX_SPEAKERS = 8;
/** Bounds and default of `latency`. */
export const LATENCY_MS = { min: 300, max: 5000, default: 1000 } as const;
