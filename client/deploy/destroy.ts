import { filesToLoad, packInUse } from '../../src/platform/onnx/manifest.ts';
import { modelKey, readManifest } from '../models/store.ts';
import { API, WORKERS } from '../workers.ts';
import { BUCKET, DATABASE, QUEUES, writeDeployConfig } from './config.ts';
import { inJurisdiction } from './home.ts';
import { nameIn } from './naming.ts';
import type { Ask } from './questions.ts';
import { survey } from './survey.ts';
import { mustWrangler, wrangler } from './wrangler.ts';

/**
 * Deletes an instance with all its data. wrangler cannot empty a bucket: the first call adds a rule that deletes the
 * objects within a day, and a second call after that deletes the bucket.
 *
 * @throws unless the user types the instance's name
 */
export async function destroy(root: string, instance: string, say: (line: string) => void, ask: Ask): Promise<void> {
  const found = await survey(root, instance);
  const database = nameIn(instance, DATABASE);
  const bucket = nameIn(instance, BUCKET);
  // The Worker that is bound to Durable Objects of the others comes first.
  const workers = WORKERS.map(({ name }) => nameIn(instance, name)).reverse();
  say(`This deletes the Workers ${workers.join(', ')},`);
  say(`the queues ${QUEUES.map((name) => nameIn(instance, name)).join(', ')},`);
  say(`the D1 database ${database} with all accounts, keys and usage, and the R2 bucket ${bucket}.`);
  if ((await ask(`Type ${instance} to delete it: `)) !== instance) throw new Error('Canceled; nothing was deleted.');

  for (const worker of [...found.secrets.keys()].map(({ name }) => nameIn(instance, name)).reverse()) {
    say(`deleting the Worker ${worker}`);
    await mustWrangler(root, ['delete', worker, '--force']);
  }
  for (const queue of found.queues) {
    say(`deleting the queue ${queue}`);
    await mustWrangler(root, ['queues', 'delete', queue]);
  }
  if (found.databaseId !== undefined) {
    say(`deleting the database ${database}`);
    // wrangler reads the id of the database from the wrangler file.
    const config = writeDeployConfig(root, API, found.databaseId, { instance });
    await mustWrangler(root, ['d1', 'delete', database, '--skip-confirmation', '--config', config]);
  }
  if (found.bucket) await deleteBucket(root, bucket, inJurisdiction(found.bucket.jurisdiction), say);
}

async function deleteBucket(root: string, bucket: string, where: string[], say: (line: string) => void): Promise<void> {
  for (const file of filesToLoad(packInUse(readManifest(root)))) {
    await mustWrangler(root, ['r2', 'object', 'delete', `${bucket}/${modelKey(file)}`, '--remote', ...where]);
  }
  say(`deleting the bucket ${bucket}`);
  if ((await wrangler(root, ['r2', 'bucket', 'delete', bucket, ...where])).code === 0) return;
  const rule = ['rollcall-everything-1d', '', '--expire-days', '1', '--force', ...where];
  await mustWrangler(root, ['r2', 'bucket', 'lifecycle', 'add', bucket, ...rule]);
  say('The bucket still contains recordings or outputs. They are deleted within a day; then run this command again.');
}
