import type { JobsEnv } from '../../src/env.ts';
import { SourceCopy as Real } from '../../src/jobs-worker.ts';
import type { TestedSourceCopy } from './tested-objects.ts';

const realNow = Date.now;

/** The object of a copy, which may read from this machine, with a view of its storage and a clock that can be set. */
export class SourceCopy extends Real implements TestedSourceCopy {
  constructor(state: DurableObjectState, env: JobsEnv) {
    super(state, { ...env, ALLOW_LOOPBACK: '1' });
  }

  async alarmIn(): Promise<number | null> {
    const at = await this.ctx.storage.getAlarm();
    return at === null ? null : at - realNow();
  }

  async runAlarmNow(): Promise<void> {
    await this.ctx.storage.setAlarm(realNow());
  }

  async setClockAhead(ms: number): Promise<void> {
    Date.now = () => realNow() + ms;
  }

  async loseMemory(): Promise<void> {
    this.ctx.abort();
  }

  async stored(): Promise<Record<string, unknown>> {
    return Object.fromEntries(await this.ctx.storage.list());
  }
}
