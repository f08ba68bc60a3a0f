import { LEASE_MS } from './dispatch.ts';
import type { JobPorts } from './ports.ts';

const RENEW_AFTER_MS = 10_000;

/** Thrown out of a step when its job was canceled, deleted or failed meanwhile; nothing is left to do. */
export class JobGone extends Error {
  constructor(jobId: string) {
    super(`job ${jobId} no longer runs`);
    this.name = 'JobGone';
  }
}

/**
 * A pause that also renews the step's lease, and ends the step when its job has ended.
 *
 * @param renew resolves to false when the job has ended. A renewal that fails is tried again ten seconds later: the
 *   step's work so far must not be lost
 * @returns a function to call between units of work of at most a few hundred milliseconds
 * @throws JobGone from that function
 */
export function createPulse(
  ports: Pick<JobPorts, 'pause' | 'now' | 'log'>,
  jobId: string,
  renew: () => Promise<boolean>,
): () => Promise<void> {
  let renewedAt = ports.now();
  return async () => {
    await ports.pause();
    const now = ports.now();
    if (now - renewedAt < RENEW_AFTER_MS) return;
    renewedAt = now;
    const isWanted = await renew().catch((error: unknown) => {
      ports.log('warn', 'lease_not_renewed', { jobId, error: String(error) });
      return true;
    });
    if (!isWanted) throw new JobGone(jobId);
  };
}

/**
 * Keeps a message's lease alive while `work` mostly waits for the network.
 *
 * @param work gets a signal that is aborted when its result is no longer needed
 * @throws JobGone within ten seconds of the job's end, without waiting for `work`
 */
export async function keepLease<T>(
  ports: JobPorts,
  jobId: string,
  outboxRowId: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  let timer: ReturnType<typeof setInterval> | null = null;
  const over = new AbortController();
  const gone = new Promise<never>((_done, giveUp) => {
    const renew = async () => {
      if (!(await ports.store.keep(jobId, outboxRowId, ports.now() + LEASE_MS))) giveUp(new JobGone(jobId));
    };
    timer = setInterval(() => {
      renew().catch((error) => {
        ports.log('warn', 'lease_not_renewed', { outboxId: outboxRowId, error: String(error) });
      });
    }, RENEW_AFTER_MS);
  });
  try {
    return await Promise.race([work(over.signal), gone]);
  } finally {
    over.abort();
    clearInterval(timer);
  }
}
