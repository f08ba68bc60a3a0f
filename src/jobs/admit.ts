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

const ACCOUNTS_PER_PAGE = 50;
/** Each takes a few statements, and an invocation may run 1,000. */
const MAX_ACCOUNTS = 100;

/** `admitWaiting` for all accounts with waiting jobs: a net for the ends of jobs, which call it themselves. */
export async function admitAll(ports: AdmitPorts): Promise<void> {
  let after: string | undefined;
  for (let accounts = 0; accounts < MAX_ACCOUNTS; accounts += ACCOUNTS_PER_PAGE) {
    const page = await ports.store.waitingAccounts(ACCOUNTS_PER_PAGE, after);
    for (const accountId of page) await admitWaiting(ports, accountId);
    if (page.length < ACCOUNTS_PER_PAGE) return;
    after = page.at(-1);
  }
}
