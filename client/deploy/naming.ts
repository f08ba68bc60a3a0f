import { createHash } from 'node:crypto';
import { API, WORKERS } from '../workers.ts';

/** Name of the instance in the wrangler files. */
export const DEFAULT_NAME = 'rollcall';

/** Returns the name of the instance that commands use: `ROLLCALL_INSTANCE`, or `rollcall`. */
export const instanceName = (): string => process.env.ROLLCALL_INSTANCE || DEFAULT_NAME;

/** Returns the fault of an instance's name, if any. The longest derived name is 14 letters longer; the limit is 63. */
export function nameFault(name: string): string | undefined {
  if (!/^[a-z][a-z0-9-]{0,46}[a-z0-9]$/.test(name))
    return 'It must have 2 to 48 lower-case letters, digits and dashes, begin with a letter and not end with a dash.';
  const ending = WORKER_ENDINGS.find((end) => name.endsWith(end));
  return ending && `It must not end in ${ending}: a Worker of another instance may have that name.`;
}

const WORKER_ENDINGS = WORKERS.filter((worker) => worker !== API).map(({ name }) => name.slice(DEFAULT_NAME.length));

/** Returns the name in an instance of a resource that is `rollcall` or `rollcall-…` in the wrangler files. */
export const nameIn = (instance: string, resource: string): string =>
  resource.replace(new RegExp(`^${DEFAULT_NAME}(?=-|$)`), instance);

/** Renames the Workers, database, bucket, queues and rate limiters in a wrangler file for an instance. */
export function renameConfig(toml: string, instance: string): string {
  if (instance === DEFAULT_NAME) return toml;
  return toml
    .replace(/"(rollcall(?:-[a-z-]+)?)"/g, (_, resource: string) => JSON.stringify(nameIn(instance, resource)))
    .replace(/^namespace_id = "(\d+)"$/gm, (_, id: string) => `namespace_id = "${counterId(instance, id)}"`);
}

/** Returns the number of a rate limiter. Rate limiters with the same number share their counters in the account. */
function counterId(instance: string, id: string): number {
  return createHash('sha256').update(`${instance}/${id}`).digest().readUInt32BE() >>> 1;
}
