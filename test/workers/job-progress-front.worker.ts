import type { JobsEnv } from '../../src/env.ts';
import { JobProgress as Real } from '../../src/jobs-worker.ts';
import type { SentMessage, TestedJobProgress } from './tested-objects.ts';

const realNow = Date.now;

/** The object of a job with queues that record its messages, a clock that can be set, and a view of its storage. */
export class JobProgress extends Real implements TestedJobProgress {
  #isAlarmBroken = false;
  #areQueuesDown = false;
  #sent: SentMessage[] = [];

  constructor(state: DurableObjectState, env: JobsEnv) {
    const recorder = (name: SentMessage['name']) =>
      ({
        send: async (message: SentMessage['message']) => void this.#sent.push({ name, message }),
        sendBatch: async (requests: Iterable<MessageSendRequest<SentMessage['message']>>) => {
          if (this.#areQueuesDown) throw new Error('the queue is unavailable');
          for (const { body, delaySeconds } of requests) this.#sent.push({ name, message: body, delaySeconds });
        },
      }) as unknown as Queue<never>;
    super(state, { ...env, JOBS: recorder('jobs'), PRIORITY: recorder('priority') });
  }

  override async alarm(): Promise<void> {
    if (this.#isAlarmBroken) throw new Error('a deployment that is broken');
    await super.alarm();
  }

  async sentSince(): Promise<SentMessage[]> {
    return this.#sent.splice(0);
  }

  async setQueuesDown(areDown: boolean): Promise<void> {
    this.#areQueuesDown = areDown;
  }

  async alarmAt(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }

  async runAlarm(): Promise<void> {
    await this.alarm();
  }

  async fireAlarm(): Promise<void> {
    await this.ctx.storage.setAlarm(realNow());
  }

  async loseAlarm(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
  }

  async breakAlarm(): Promise<void> {
    this.#isAlarmBroken = true;
    await this.fireAlarm();
  }

  async setClock(aheadMs: number): Promise<void> {
    this.#isAlarmBroken = false;
    Date.now = () => realNow() + aheadMs;
  }

  async loseMemory(): Promise<void> {
    this.ctx.abort();
  }

  async tables(): Promise<string[]> {
    const query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'";
    return this.ctx.storage.sql
      .exec<{ name: string }>(query)
      .toArray()
      .map(({ name }) => name);
  }

  async rows(): Promise<number> {
    const counts = (await this.tables()).map((table) =>
      this.ctx.storage.sql.exec(`SELECT * FROM "${table}"`).toArray(),
    );
    return counts.flat().length;
  }

  async breakIsolate(): Promise<void> {
    const fail = () => {
      throw new RangeError('out of memory');
    };
    Object.assign(Float32Array.prototype, { subarray: fail, set: fail, fill: fail });
    Math.exp = fail;
    Date.now = fail;
  }
}
