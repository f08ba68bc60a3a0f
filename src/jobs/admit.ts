import { dispatchAll } from './dispatch.ts';
import type { ControlPorts } from './ports.ts';

type AdmitPorts = Pick<ControlPorts, 'store' | 'queue' | 'now' | 'log'>;

/**
 * Has waiting jobs of an account begin, as far as its work allows. A fault is only logged: the sweep does it again.
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
/** Each takes a few statements, of the thousand that an invocation may make. */
const MAX_ACCOUNTS = 100;

/** The same for all accounts, whatever has kept the ends of their jobs from doing so. */
export async function admitAll(ports: AdmitPorts): Promise<void> {
  let after: string | undefined;
  for (let accounts = 0; accounts < MAX_ACCOUNTS; accounts += ACCOUNTS_PER_PAGE) {
    const page = await ports.store.waitingAccounts(ACCOUNTS_PER_PAGE, after);
    for (const accountId of page) await admitWaiting(ports, accountId);
    if (page.length < ACCOUNTS_PER_PAGE) return;
    after = page.at(-1);
  }
}
