import type { JobStatus } from './app-services.ts';

/** contract §4: created → pending → running → succeeded | failed | canceled; terminal states never change. */
const TERMINAL: ReadonlySet<JobStatus> = new Set(['succeeded', 'failed', 'canceled']);

export const isTerminal = (status: JobStatus): boolean => TERMINAL.has(status);
