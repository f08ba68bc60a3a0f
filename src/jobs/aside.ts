import { QUEUE_LEASE_MS } from './dispatch.ts';
import { handleDeadLetter, MAX_DELIVERIES, type Verdict } from './handle.ts';
import { type JobMessage, type Message, outboxId, type WebhookMessage } from './messages.ts';
import type { JobPorts } from './ports.ts';

/** Messages that wait for other people's servers. */
export type WaitingMessage = Extract<JobMessage, { step: 'plan' }> | WebhookMessage;

/** Whether a message's step may stand still because another server does. */
export const isWaiting = (message: Message): message is WaitingMessage =>
  message.step === 'plan' || message.step === 'webhook';

/** Steps of a kind at once that a queue no longer waits for. Each copies a source in parts of some megabytes at most. */
const MOST = 64;
/** …and of one account: its sources and receivers that stand still take up nobody else's places. */
const MOST_OF_ACCOUNT = 24;
/** Before a step is looked at again whose account has so many: a share of how long it has waited, so that a thousand of them are no load… */
const PAUSE_SHARE = 0.25;
/** …within these. */
const PAUSE_SECONDS = { least: 5, most: 60 };

/**
 * Steps that take long because another server does, beside their queue: a queue that hands out one batch at a time, as the local ones do, would let one
 * source that drips hold up everybody's jobs. Only where an invocation may go on after its message was acknowledged. What is lost then,
 * the outbox knows, as ever.
 */
export class Aside {
  /** By kind of step, and by kind and account. */
  readonly #counts = new Map<string, number>();

  /** @param patienceMs how long the queue waits for a step */
  constructor(private readonly patienceMs: number) {}

  /** Whether a step of the account may begin: not many of its kind go on beside the queue. */
  hasRoom(step: WaitingMessage['step'], accountId: string): boolean {
    return this.#count(`${step} ${accountId}`) < MOST_OF_ACCOUNT;
  }

  /**
   * @param work the handling of a message of this kind and account; it does not reject
   * @returns its verdict; undefined when it goes on beside the queue: then `goOn` was called with what is left of it
   */
  async verdictOf(
    step: WaitingMessage['step'],
    accountId: string,
    work: Promise<Verdict>,
    goOn: (rest: Promise<Verdict>) => void,
  ): Promise<Verdict | undefined> {
    if (this.#count(step) >= MOST) return work;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const impatient = new Promise<undefined>((giveUp) => {
      timer = setTimeout(() => giveUp(undefined), this.patienceMs);
    });
    const verdict = await Promise.race([work, impatient]);
    clearTimeout(timer);
    if (verdict !== undefined) return verdict;
    const names = [step, `${step} ${accountId}`];
    for (const name of names) this.#counts.set(name, this.#count(name) + 1);
    goOn(
      work.finally(() => {
        for (const name of names) this.#leave(name);
      }),
    );
    return undefined;
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  #leave(name: string): void {
    const left = this.#count(name) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}

/**
 * Puts a message back for which there is no room, as if it had not been delivered.
 *
 * @param deliveries of the message so far, with this one
 * @param since when its job came to this step, milliseconds since the Unix epoch
 */
export async function putBack(
  ports: JobPorts,
  message: WaitingMessage,
  deliveries: number,
  since: number,
): Promise<void> {
  const now = ports.now();
  const share = Math.round((PAUSE_SHARE * (now - since)) / 1000);
  const pauseSeconds = Math.min(PAUSE_SECONDS.most, Math.max(PAUSE_SECONDS.least, share));
  await ports.store.renewLease(outboxId(message), now + pauseSeconds * 1000 + QUEUE_LEASE_MS);
  await ports.queue.send({ ...message, earlierDeliveries: deliveries - 1 }, pauseSeconds);
}

/**
 * What the queue would do with a message that it has forgotten.
 *
 * @param deliveries of the message so far
 */
export async function afterwards(
  ports: JobPorts,
  message: WaitingMessage,
  deliveries: number,
  verdict: Verdict,
): Promise<void> {
  if (verdict.kind === 'done') return;
  if (deliveries >= MAX_DELIVERIES) await handleDeadLetter(ports, message);
  else await ports.queue.send({ ...message, earlierDeliveries: deliveries }, verdict.delaySeconds);
}
