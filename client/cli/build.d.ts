/** Builds the command if its sources have changed since the last build. */
export function buildCommand(): Promise<void>;
