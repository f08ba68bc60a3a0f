/** Largest recording that the service accepts (docs/api.md); clients check it before an upload. */
export const MAX_RECORDING_BYTES = 1024 ** 3;
