import { dispatchAll } from './dispatch.ts';
import type { ControlPorts } from './ports.ts';

type AdmitPorts = Pick<ControlPorts, 'store' | 'queue' | 'now' | 'log'>;

/**
 * Starts waiting jobs of an account as far as its limit of work allows. Faults are only logged: the sweep tries again.
 */
export async function admitWaiting(ports: AdmitPorts, accountId: string): Promise<void> {
  try {
    const ids = await ports.store.admit(accountId, ports.now());
    await dispatchAll(
      ports,
      ids.map((jobId) => ({ message: { step: 'ingest', jobId }, delaySeconds: 0 })),
    );
  } catch (error) {
    ports.log('warn', 'waiting_jobs_not_admitted', { error: String(error) });
  }
}

const SWEEP = 'admit';
const ACCOUNTS_PER_PAGE = 50;
/** An account takes a few statements, and an invocation may run 1,000. */
const MAX_ACCOUNTS = 100;

/**
 * `admitWaiting` for all accounts with room for a waiting job. A job that ends calls `admitWaiting` itself; this covers
 * the calls that failed. A run continues where the last one ended, so that every account gets its turn.
 */
export async function admitAll(ports: AdmitPorts): Promise<void> {
  let after = await ports.store.sweepPosition(SWEEP);
  let left = MAX_ACCOUNTS;
  // From the position to the end, then once from the beginning.
  for (let rounds = after === '' ? 1 : 2; rounds > 0 && left > 0; ) {
    const page = await ports.store.waitingAccounts(Math.min(ACCOUNTS_PER_PAGE, left), after);
    for (const accountId of page) await admitWaiting(ports, accountId);
    left -= page.length;
    after = page.at(-1) ?? '';
    if (page.length > 0) continue;
    rounds--;
  }
  await ports.store.setSweepPosition(SWEEP, after);
}
