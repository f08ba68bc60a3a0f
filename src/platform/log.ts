import type { Log } from '../jobs/job-ports.ts';

/** Logs one JSON object per line, which Workers Logs and `wrangler tail` index. */
export const log: Log = (level, event, fields = {}) => {
  const line = JSON.stringify({ level, event, ...fields });
  if (level === 'error') console.error(line);
  else if (level === 'warn') console.warn(line);
  else console.log(line);
};
