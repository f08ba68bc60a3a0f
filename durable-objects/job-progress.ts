import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../src/env.ts';
import { dispatch } from '../src/jobs/dispatch.ts';
import { resendLost, reviveStranded } from '../src/jobs/resend.ts';
import { isTerminal } from '../src/jobs/state.ts';
import { jobPorts } from '../src/services.ts';
import { erase } from './erase.ts';

const ALARM_EVERY_MS = 30_000;
/** Share of the whole that assembling is shown as: it is short, and only its end is known. */
const ASSEMBLE_SHARE = 0.05;

/**
 * Counts the parts of one job, starts its assembly exactly once, and looks after it: while the job runs, an alarm sends again
 * what was lost. Its own memory may vanish at any time; what counts is in its SQLite.
 */
export class JobProgress extends DurableObject<Env> {
  /** Shards in work, 0…1; a hint for progress bars only, so it may be lost. */
  readonly #fractions = new Map<number, number>();
  /** The storage, tables included, has been deleted: the job has ended. */
  #closed = false;
  readonly #work: string;
  /** Table of the parts that are there. Those of another version of the service, or of other models, are of no use to this one, and not counted. */
  readonly #parts: string;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#work = jobPorts(env).work;
    this.#parts = `"parts_${this.#work}"`;
    state.storage.sql.exec('CREATE TABLE IF NOT EXISTS job (id TEXT NOT NULL, shard_count INTEGER NOT NULL)');
    state.storage.sql.exec(`CREATE TABLE IF NOT EXISTS ${this.#parts} (shard INTEGER PRIMARY KEY)`);
  }

  /** Called before the first part can exist; again, when the plan runs twice. */
  async begin(jobId: string, shardCount: number): Promise<void> {
    this.ctx.storage.transactionSync(() => {
      this.ctx.storage.sql.exec('DELETE FROM job');
      this.ctx.storage.sql.exec('INSERT INTO job (id, shard_count) VALUES (?, ?)', jobId, shardCount);
    });
    await this.ctx.storage.setAlarm(Date.now() + ALARM_EVERY_MS);
  }

  async report(shard: number, fraction: number): Promise<void> {
    this.#fractions.set(shard, Math.min(1, Math.max(0, fraction)));
  }

  /** @returns whether the part counts: not one of another version of the service, which may still run beside this one after a deployment */
  async partDone(jobId: string, shard: number, work: string): Promise<boolean> {
    const job = this.#job();
    if (job?.id !== jobId || shard >= job.shardCount || work !== this.#work) return false;
    this.ctx.storage.sql.exec(`INSERT OR IGNORE INTO ${this.#parts} (shard) VALUES (?)`, shard);
    this.#fractions.delete(shard);
    const isLast = this.#partCount() === job.shardCount;
    await this.#lookLate();
    if (isLast) await this.#startAssembly(jobId);
    return true;
  }

  /** 0…1; 0 for a job that is not planned yet. */
  async fraction(): Promise<number> {
    const job = this.#job();
    if (!job) return 0;
    const inWork = [...this.#fractions.values()].reduce((sum, value) => sum + value, 0);
    return Math.min(1, ((this.#partCount() + inWork) / job.shardCount) * (1 - ASSEMBLE_SHARE));
  }

  override async alarm(): Promise<void> {
    const job = this.#job();
    if (!job) return;
    // First the next alarm: whatever fails below is tried again.
    await this.ctx.storage.setAlarm(Date.now() + ALARM_EVERY_MS);
    const ports = jobPorts(this.env);
    const record = await ports.store.find(job.id);
    if (!record || isTerminal(record.status)) {
      this.#closed = true;
      try {
        await erase(this.ctx.storage);
      } catch (error) {
        this.#closed = false;
        throw error;
      }
      return;
    }
    if (this.#partCount() === job.shardCount) await this.#startAssembly(job.id);
    if (!(await reviveStranded(ports, record))) await resendLost(ports, ports.now(), job.id);
  }

  /**
   * The platform gives an alarm up that fails for some minutes, as all do while a deployment is broken, and may go on telling when it was due. What it should have
   * done is done now: workerd calls no later one either.
   */
  async #lookLate(): Promise<void> {
    const dueAt = (await this.ctx.storage.getAlarm()) ?? 0;
    if (dueAt < Date.now() - ALARM_EVERY_MS) await this.alarm();
  }

  /** The message's row decides: its primary key lets one assembly be written, however many parts think they were the last. */
  async #startAssembly(jobId: string): Promise<void> {
    const ports = jobPorts(this.env);
    const written = await ports.store.requestAssemble(jobId, ports.now());
    if (written) await dispatch(ports, { step: 'assemble', jobId });
  }

  #job(): { id: string; shardCount: number } | undefined {
    if (this.#closed) return undefined;
    const [row] = this.ctx.storage.sql.exec('SELECT id, shard_count FROM job').toArray();
    return row ? { id: String(row.id), shardCount: Number(row.shard_count) } : undefined;
  }

  #partCount(): number {
    return Number(this.ctx.storage.sql.exec(`SELECT COUNT(*) AS parts FROM ${this.#parts}`).one().parts);
  }
}
