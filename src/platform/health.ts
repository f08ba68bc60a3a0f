/** A result is reused for this long, because requests without a key must not cost a read each. */
const GOOD_MS = 5000;
/** Longer than a read takes on a bad day. */
const TIMEOUT_MS = 3000;

let last: { readonly at: number; readonly canTake: boolean } | undefined;

/**
 * Whether a job could be stored now: the database answers and has the service's tables. Queues do not matter: what
 * cannot be sent is in the outbox.
 *
 * @param now milliseconds since the Unix epoch
 */
export async function canTakeJobs(db: D1Database, now: number): Promise<boolean> {
  if (!last || now - last.at >= GOOD_MS || now < last.at) last = { at: now, canTake: await answers(db) };
  return last.canTake;
}

async function answers(db: D1Database): Promise<boolean> {
  const late = new Promise<false>((done) => setTimeout(() => done(false), TIMEOUT_MS));
  const read = db.prepare('SELECT 1 FROM jobs LIMIT 1').all();
  return Promise.race([read.then(() => true).catch(() => false), late]);
}
