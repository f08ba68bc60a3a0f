import { type ServiceWorker, WORKERS } from '../workers.ts';
import { BUCKET, DATABASE, findDatabaseId, QUEUES } from './config.ts';
import { type BucketHome, findBucket } from './home.ts';
import { nameIn } from './naming.ts';
import { mustWrangler, wrangler } from './wrangler.ts';

/** The existing resources of an instance. */
export interface Survey {
  readonly databaseId: string | undefined;
  readonly bucket: BucketHome | undefined;
  readonly queues: readonly string[];
  /** Names of secrets by deployed Worker. */
  readonly secrets: ReadonlyMap<ServiceWorker, readonly string[]>;
}

/** Reads the account without changing it. */
export async function survey(root: string, instance: string): Promise<Survey> {
  const databaseId = await findDatabaseId(root, nameIn(instance, DATABASE));
  const bucket = await findBucket(root, nameIn(instance, BUCKET));
  const queues: string[] = [];
  for (const queue of QUEUES.map((name) => nameIn(instance, name))) {
    if ((await wrangler(root, ['queues', 'info', queue])).code === 0) queues.push(queue);
  }
  const secrets = new Map<ServiceWorker, readonly string[]>();
  for (const worker of WORKERS) {
    const names = await secretNames(root, nameIn(instance, worker.name));
    if (names) secrets.set(worker, names);
  }
  return { databaseId, bucket, queues, secrets };
}

/** Whether the deployed Worker has a signing key. */
export const hasSigningKey = ({ secrets }: Survey, worker: ServiceWorker): boolean =>
  secrets.get(worker)?.includes('SIGNING_KEY') === true;

/** Describes existing resources that a first deployment would take over. None if a Worker has a signing key. */
export function foreignResources(found: Survey, instance: string): string[] {
  if (WORKERS.some((worker) => hasSigningKey(found, worker))) return [];
  return [
    ...[...found.secrets.keys()].map(
      ({ name }) => `the Worker ${nameIn(instance, name)}, whose code would be replaced`,
    ),
    ...(found.databaseId === undefined ? [] : [`the D1 database ${nameIn(instance, DATABASE)}`]),
    ...(found.bucket ? [`the R2 bucket ${nameIn(instance, BUCKET)}`] : []),
    ...found.queues.map((queue) => `the queue ${queue}`),
  ];
}

/**
 * Lists the names of a Worker's secrets; undefined for a Worker that is not deployed.
 *
 * @throws if they cannot be listed, so that the caller does not assume that they are missing
 */
export async function secretNames(root: string, worker: string): Promise<string[] | undefined> {
  const args = ['secret', 'list', '--format', 'json', '--name', worker];
  const { code, stdout, stderr } = await wrangler(root, args);
  if (code !== 0 && /Worker "[^"]+" not found/.test(stderr + stdout)) return undefined;
  const listed = code === 0 ? stdout : await mustWrangler(root, args);
  return (JSON.parse(listed.slice(listed.indexOf('['))) as { name: string }[]).map(({ name }) => name);
}
