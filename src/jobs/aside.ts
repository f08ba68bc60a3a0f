import { handleDeadLetter, MAX_DELIVERIES, type Verdict } from './handle.ts';
import type { JobMessage, Message, WebhookMessage } from './messages.ts';
import type { JobPorts } from './ports.ts';

/** Messages that wait for other people's servers. */
export type WaitingMessage = Extract<JobMessage, { step: 'plan' }> | WebhookMessage;

/** Whether a message's step may stand still because another server does. */
export const isWaiting = (message: Message): message is WaitingMessage =>
  message.step === 'plan' || message.step === 'webhook';

/** Steps at once that a queue no longer waits for. Each copies a source in parts of some megabytes at most. */
const MOST = 32;

/**
 * Steps that take long because another server does, beside their queue: a queue that hands out one batch at a time, as the local ones do, would let one
 * source that drips hold up everybody's jobs. Only where an invocation may go on after its message was acknowledged. What is lost then,
 * the outbox knows, as ever.
 */
export class Aside {
  #count = 0;

  /** @param patienceMs how long the queue waits for a step */
  constructor(private readonly patienceMs: number) {}

  /**
   * @param work the handling of a message; it does not reject
   * @returns its verdict; undefined when it goes on beside the queue: then `goOn` was called with what is left of it
   */
  async verdictOf(work: Promise<Verdict>, goOn: (rest: Promise<Verdict>) => void): Promise<Verdict | undefined> {
    if (this.#count >= MOST) return work;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const impatient = new Promise<undefined>((giveUp) => {
      timer = setTimeout(() => giveUp(undefined), this.patienceMs);
    });
    const verdict = await Promise.race([work, impatient]);
    clearTimeout(timer);
    if (verdict !== undefined) return verdict;
    this.#count++;
    goOn(
      work.finally(() => {
        this.#count--;
      }),
    );
    return undefined;
  }
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
