/** Largest recording that the service takes (docs/api.md). Who sends a larger one is told before it is on its way. */
export const MAX_RECORDING_BYTES = 1024 ** 3;
