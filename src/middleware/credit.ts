import type { Account, AppServices } from '../jobs/app-services.ts';

/** Whether the account may start another job or stream, beside those that it has begun. */
export async function canPay({ credit }: AppServices, account: Account): Promise<boolean> {
  return account.subscribed || (await credit.suffices(account.id));
}
