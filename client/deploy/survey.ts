import { BUCKET, DATABASE, findDatabaseId, QUEUES } from './config.ts';
import { type BucketHome, findBucket } from './home.ts';
import { nameIn } from './naming.ts';
import { wrangler } from './wrangler.ts';

/** What of an instance the account has. */
export interface Survey {
  readonly databaseId: string | undefined;
  readonly bucket: BucketHome | undefined;
  readonly queues: readonly string[];
  /** Names of the Worker's secrets; undefined where there is no Worker. */
  readonly secrets: readonly string[] | undefined;
}

/** Looks at the account; changes nothing. */
export async function survey(root: string, instance: string): Promise<Survey> {
  const databaseId = await findDatabaseId(root, nameIn(instance, DATABASE));
  const bucket = await findBucket(root, nameIn(instance, BUCKET));
  const queues: string[] = [];
  for (const queue of QUEUES.map((name) => nameIn(instance, name))) {
    if ((await wrangler(root, ['queues', 'info', queue])).code === 0) queues.push(queue);
  }
  const listed = await wrangler(root, ['secret', 'list', '--format', 'json', '--name', instance]);
  return { databaseId, bucket, queues, secrets: listed.code === 0 ? secretNames(listed.stdout) : undefined };
}

/** Whether the Worker of that name is one of ours, which a deployment replaces. */
export const isDeployed = ({ secrets }: Survey): boolean => secrets?.includes('SIGNING_KEY') === true;

/** What a first deployment would take over, in words. */
export function strangers(found: Survey, instance: string): string[] {
  if (isDeployed(found)) return [];
  return [
    ...(found.secrets ? [`the Worker ${instance}, whose code would be replaced`] : []),
    ...(found.databaseId === undefined ? [] : [`the D1 database ${nameIn(instance, DATABASE)}`]),
    ...(found.bucket ? [`the R2 bucket ${nameIn(instance, BUCKET)}`] : []),
    ...found.queues.map((queue) => `the queue ${queue}`),
  ];
}

function secretNames(json: string): string[] {
  return (JSON.parse(json.slice(json.indexOf('['))) as { name: string }[]).map(({ name }) => name);
}
