/** Builds the command where its sources have changed since it was built last. */
export function buildCommand(): Promise<void>;
