import { handleMessage } from '../../src/jobs/handle-message.ts';
import type { Message } from '../../src/jobs/job-messages.ts';
import type { QueuePort } from '../../src/jobs/job-ports.ts';
import { portsOf } from './ports.ts';
import { type Invocation, MINUTE } from './timeline.ts';
import type { World } from './world.ts';

/** `max_retries` in wrangler.jobs.toml, and the first delivery. */
const MAX_DELIVERIES = 101;
/** The platform kills a consumer after this time. */
const LONGEST_RUN_MS = 15 * MINUTE;

/**
 * Queues that lose messages, have backlogs, deliver twice and lose acknowledgements; and their consumer.
 */
export class SimulatedQueue {
  #deliveries = 0;

  constructor(private readonly world: World) {}

  portOf(caller: Invocation): QueuePort {
    const { faults } = this.world;
    return {
      send: (message, delaySeconds) =>
        faults.call(caller, 'queue.send', async () => this.#enqueue(message, delaySeconds)),
      sendAll: (all) =>
        faults.call(caller, 'queue.sendAll', async () => {
          for (const { message, delaySeconds } of all) this.#enqueue(message, delaySeconds);
        }),
    };
  }

  #enqueue(message: Message, delaySeconds: number): void {
    const { time, faults } = this.world;
    if (faults.chance(0.03)) {
      time.trace(`LOST ${JSON.stringify(message)}`);
      return;
    }
    const backlogMs = time.chance(0.03) ? time.between(0, 20 * MINUTE) : time.between(5, 2000);
    const at = time.now + delaySeconds * 1000 + backlogMs;
    time.at(at, () => this.#deliver(message, 1));
    if (time.chance(0.08)) time.at(at + time.between(0, 3 * MINUTE), () => this.#deliver(message, 1));
  }

  #deliver(message: Message, attempt: number): void {
    const { world } = this;
    const { time } = world;
    const retryAfter = (delayMs: number) => {
      if (attempt < MAX_DELIVERIES)
        time.after(delayMs + time.between(0, 5000), () => this.#deliver(message, attempt + 1));
    };
    const part = message.step === 'shard' ? message.shard : '';
    const invocation = world.invocation(`${message.step}${part}#${attempt}/${this.#deliveries++}`);
    invocation.onDeath.add(() => retryAfter(time.between(100, 4 * MINUTE)));
    time.after(LONGEST_RUN_MS, () => invocation.die());
    const isolate = world.anyIsolate();
    time.trace(`deliver ${JSON.stringify(message)} to ${invocation.name} ${isolate.work}`);
    handleMessage(portsOf(world, invocation, isolate), isolate.mutex, message, attempt).then(
      (verdict) => {
        if (invocation.isDead) return;
        invocation.end();
        time.trace(`${invocation.name} -> ${JSON.stringify(verdict)}`);
        if (verdict.kind === 'retry') retryAfter(verdict.delaySeconds * 1000);
        // The acknowledgement may be lost.
        else if (time.chance(0.03)) retryAfter(time.between(100, 4 * MINUTE));
      },
      (error: unknown) => {
        if (invocation.isDead) return;
        invocation.end();
        time.trace(`${invocation.name} threw ${error}`);
        retryAfter(10_000);
      },
    );
  }
}
