import type { Account } from '../jobs/app-services.ts';

/** The least that a job is billed; an account with less cannot pay for one. */
const MIN_CREDIT_SECONDS = 20;

/** Whether the account may start another job. */
export function canPay(account: Account): boolean {
  return account.subscribed || account.creditSeconds >= MIN_CREDIT_SECONDS;
}
