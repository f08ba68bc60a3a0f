import { DurableObject } from 'cloudflare:workers';
import type { JobsEnv } from '../src/env.ts';
import { dispatch } from '../src/jobs/dispatch.ts';
import { resendLost, reviveStranded } from '../src/jobs/resend.ts';
import { isTerminal } from '../src/jobs/state.ts';
import { jobPorts } from '../src/services-jobs.ts';
import { erase } from './erase.ts';

const ALARM_EVERY_MS = 30_000;
/**
 * Shares of the whole that reading the recording and assembling the result are shown as. Of assembling only the end is
 * known.
 */
const INGEST_SHARE = 0.1;
const ASSEMBLE_SHARE = 0.05;

interface Counted {
  readonly id: string;
  readonly tag: string;
  /** Undefined while the recording is being read. */
  readonly shardCount: number | undefined;
}

/**
 * Counts the parts of one job, starts its assembly exactly once, and looks after it: while the job runs, an alarm sends
 * again what was lost. Its own memory may vanish at any time; what counts is in its SQLite.
 */
export class JobProgress extends DurableObject<JobsEnv> {
  /** Shards in work, and how much of the recording was read, 0…1; hints for progress bars only, so they may be lost. */
  readonly #fractions = new Map<number, number>();
  #ingested = 0;
  #shown = 0;
  /** The storage, tables included, has been deleted: the job has ended. */
  #closed = false;

  constructor(state: DurableObjectState, env: JobsEnv) {
    super(state, env);
    const { sql } = state.storage;
    sql.exec('CREATE TABLE IF NOT EXISTS counted (id TEXT NOT NULL, tag TEXT NOT NULL, shard_count INTEGER)');
    sql.exec('CREATE TABLE IF NOT EXISTS parts (tag TEXT NOT NULL, shard INTEGER NOT NULL, PRIMARY KEY (tag, shard))');
  }

  /**
   * Called before the first part can exist; again, when the recording is read by several invocations. A new tag begins
   * from nothing.
   */
  async begin(jobId: string, tag: string): Promise<void> {
    const before = this.#job();
    if (before?.tag !== tag) {
      this.ctx.storage.transactionSync(() => {
        this.ctx.storage.sql.exec('DELETE FROM counted');
        this.ctx.storage.sql.exec('INSERT INTO counted (id, tag) VALUES (?, ?)', jobId, tag);
      });
      this.#fractions.clear();
      this.#ingested = 0;
    }
    await this.ctx.storage.setAlarm(Date.now() + ALARM_EVERY_MS);
  }

  async reportIngest(share: number): Promise<void> {
    this.#ingested = Math.min(1, Math.max(0, share));
  }

  /** The recording was read as a whole: there are so many parts. */
  async expect(jobId: string, tag: string, shardCount: number): Promise<void> {
    this.ctx.storage.sql.exec('UPDATE counted SET shard_count = ? WHERE id = ? AND tag = ?', shardCount, jobId, tag);
    await this.#startIfWhole();
  }

  async report(shard: number, fraction: number): Promise<void> {
    this.#fractions.set(shard, Math.min(1, Math.max(0, fraction)));
  }

  /**
   * @returns whether the part counts: not one of other bytes, or of another version of the service, which may still run
   * after a deployment
   */
  async partDone(jobId: string, shard: number, tag: string): Promise<boolean> {
    const job = this.#job();
    if (job?.id !== jobId || job.tag !== tag || shard >= (job.shardCount ?? Number.POSITIVE_INFINITY)) return false;
    this.ctx.storage.sql.exec('INSERT OR IGNORE INTO parts (tag, shard) VALUES (?, ?)', tag, shard);
    this.#fractions.delete(shard);
    await this.#lookLate();
    await this.#startIfWhole();
    return true;
  }

  /** 0…1, never falling while the object lives; 0 for a job that has not begun. */
  async fraction(): Promise<number> {
    const job = this.#job();
    if (!job) return 0;
    const parts = this.#partCount(job.tag, job.shardCount ?? Number.MAX_SAFE_INTEGER);
    const done = [...this.#fractions.values()].reduce((sum, value) => sum + value, parts);
    const isRead = job.shardCount !== undefined;
    const ingested = isRead ? 1 : this.#ingested;
    // While the recording is read, its length is estimated from how much of it has come.
    const expected = job.shardCount ?? Math.max(done, this.#fractions.size + 1) / Math.max(0.05, ingested);
    const analysed = (1 - INGEST_SHARE - ASSEMBLE_SHARE) * Math.min(1, done / expected);
    this.#shown = Math.max(this.#shown, INGEST_SHARE * ingested + analysed);
    return this.#shown;
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
    await this.#startIfWhole();
    if (!(await reviveStranded(ports, record))) await resendLost(ports, ports.now(), job.id);
  }

  /**
   * The platform gives an alarm up that fails for some minutes, as all do while a deployment is broken, and may
   * continue telling when it was due. What it should have done is done now: workerd calls no later one either.
   */
  async #lookLate(): Promise<void> {
    const dueAt = (await this.ctx.storage.getAlarm()) ?? 0;
    if (dueAt < Date.now() - ALARM_EVERY_MS) await this.alarm();
  }

  /**
   * The message's row decides: its primary key lets one assembly be written, however many parts think they were the
   * last.
   */
  async #startIfWhole(): Promise<void> {
    const job = this.#job();
    if (job?.shardCount === undefined || this.#partCount(job.tag, job.shardCount) < job.shardCount) return;
    const ports = jobPorts(this.env);
    const written = await ports.store.requestAssemble(job.id, ports.now());
    if (written) await dispatch(ports, { step: 'assemble', jobId: job.id });
  }

  #job(): Counted | undefined {
    if (this.#closed) return undefined;
    const [row] = this.ctx.storage.sql.exec('SELECT id, tag, shard_count FROM counted').toArray();
    if (!row) return undefined;
    const shardCount = row.shard_count === null ? undefined : Number(row.shard_count);
    return { id: String(row.id), tag: String(row.tag), shardCount };
  }

  /** Parts of the first so many shards. */
  #partCount(tag: string, shardCount: number): number {
    const { sql } = this.ctx.storage;
    const counted = sql.exec('SELECT COUNT(*) AS parts FROM parts WHERE tag = ? AND shard < ?', tag, shardCount);
    return Number(counted.one().parts);
  }
}
