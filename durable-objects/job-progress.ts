import { DurableObject } from 'cloudflare:workers';
import type { JobsEnv } from '../src/env.ts';
import { dispatch, LEASE_MS, QUEUE_LEASE_MS } from '../src/jobs/dispatch.ts';
import { SHORT_SHARDS } from '../src/jobs/ingest-state.ts';
import { outboxId } from '../src/jobs/job-messages.ts';
import type { JobPorts, Queued, ShardStart } from '../src/jobs/job-ports.ts';
import { isTerminal } from '../src/jobs/job-record.ts';
import type { ProgressRpc } from '../src/platform/object-stubs.ts';
import { jobPorts } from '../src/services-jobs.ts';
import { erase } from './erase.ts';
import { type HandedOut, ShardLeases } from './shard-leases.ts';

/** Shards of one job in work at the same time: enough to be fast, few enough to leave room for other jobs. */
const WINDOW_SHARDS = 8;
/** Pause before `#advance` is retried, doubled with each consecutive fault. */
const FIRST_PAUSE_MS = 5000;
const MAX_PAUSE_MS = 5 * 60_000;
/** Pause before a shard whose consumer crashed is sent again, doubled each time. */
const FIRST_RESEND_PAUSE_MS = 15_000;
const MAX_RESEND_PAUSE_MS = 15 * 60_000;
/** Interval of the check whether the job has ended, while no shard is handed out. */
const IDLE_MS = 3_600_000;
const RENEW_EVERY_MS = 10_000;
/**
 * Shares of a job's progress for reading the recording and for assembling the result. Assembling reports only its end.
 */
const INGEST_SHARE = 0.1;
const ASSEMBLE_SHARE = 0.05;

interface Job {
  readonly id: string;
  readonly tag: string;
  /** Undefined while the recording is being read. */
  readonly shardCount: number | undefined;
  /** Number of shards that can be analysed. */
  readonly ready: number;
  readonly isAssembling: boolean;
}

/**
 * Hands out the shards of one job, a few at a time, holds their leases, counts their parts and starts the assembly
 * once. An alarm at the earliest lease sends lost shards again. The platform may drop the memory of the object at any
 * time; all state that matters is in SQLite.
 */
export class JobProgress extends DurableObject<JobsEnv> implements ProgressRpc {
  readonly #leases: ShardLeases;
  /** Progress of the shards in work, 0…1. Only for progress bars, so it may be lost, as `#ingested` may. */
  readonly #fractions = new Map<number, number>();
  /** Share of the recording that was read, 0…1. */
  #ingested = 0;
  #shown = 0;
  #faults = 0;
  #renewedAt = 0;
  /** The job has ended: the storage was deleted, tables included. */
  #closed = false;

  constructor(state: DurableObjectState, env: JobsEnv) {
    super(state, env);
    const { sql } = state.storage;
    sql.exec(`CREATE TABLE IF NOT EXISTS job (
      id TEXT NOT NULL, tag TEXT NOT NULL, shard_count INTEGER, ready INTEGER NOT NULL DEFAULT 0,
      is_assembling INTEGER NOT NULL DEFAULT 0)`);
    this.#leases = new ShardLeases(sql);
  }

  /** Called before any shard can be handed out, and by each invocation that reads the recording. */
  async begin(jobId: string, tag: string): Promise<void> {
    if (this.#closed) return;
    if (this.#job()?.tag !== tag) {
      this.ctx.storage.transactionSync(() => {
        this.ctx.storage.sql.exec('DELETE FROM job');
        this.ctx.storage.sql.exec('INSERT INTO job (id, tag) VALUES (?, ?)', jobId, tag);
        // The state of shards that were handed out under another tag is unknown.
        this.#leases.expireAll(tag);
      });
      this.#fractions.clear();
      this.#ingested = 0;
    }
    await this.#setAlarm();
  }

  async reportIngest(share: number): Promise<void> {
    this.#ingested = Math.min(1, Math.max(0, share));
  }

  /** The first `shards` shards can be analysed; the recording is still being read. */
  async ready(tag: string, shards: number): Promise<void> {
    if (this.#closed) return;
    this.ctx.storage.sql.exec('UPDATE job SET ready = MAX(ready, ?) WHERE tag = ?', shards, tag);
    await this.#advance();
  }

  /** Sets the final number of shards: the recording was read to its end. */
  async expect(tag: string, shardCount: number): Promise<void> {
    if (this.#closed) return;
    this.ctx.storage.sql.exec('UPDATE job SET shard_count = ?, ready = ? WHERE tag = ?', shardCount, shardCount, tag);
    await this.#advance();
  }

  async startShard(shard: number, tag: string): Promise<ShardStart> {
    const job = this.#job();
    if (this.#closed) return { kind: 'skip' };
    const lease = job?.tag === tag ? this.#leases.find(tag, shard) : undefined;
    if (!lease) return { kind: 'unknown' };
    const now = Date.now();
    if (lease.leaseUntil === undefined) {
      // The `partDone` call may have crashed after this write and before it started the assembly.
      await this.#advance();
      return { kind: 'skip' };
    }
    if (lease.isInWork && lease.leaseUntil > now) return { kind: 'skip' };
    const starts = this.#leases.begin(tag, shard, now + LEASE_MS);
    await this.#setAlarm();
    await this.#renewAnalyseLease();
    return { kind: 'run', starts };
  }

  /** @returns whether the part is still wanted */
  async report(shard: number, tag: string, fraction: number): Promise<boolean> {
    if (this.#job()?.tag !== tag) return false;
    this.#fractions.set(shard, Math.min(1, Math.max(0, fraction)));
    this.#leases.renew(tag, shard, Date.now() + LEASE_MS);
    await this.#renewAnalyseLease();
    return true;
  }

  async putBack(shard: number, tag: string, dueAt: number, isForgiven: boolean): Promise<void> {
    if (this.#closed) return;
    this.#leases.putBack(tag, shard, dueAt + QUEUE_LEASE_MS, isForgiven ? 1 : 0);
  }

  /** @returns false for a tag of other bytes, or of another version of the service: its parts do not count */
  async partDone(shard: number, tag: string): Promise<boolean> {
    if (this.#job()?.tag !== tag) return false;
    this.#leases.done(tag, shard);
    this.#fractions.delete(shard);
    await this.#advance();
    return true;
  }

  /** Hands out all shards again: stored parts are missing. */
  async restart(tag: string): Promise<void> {
    if (this.#closed) return;
    this.#leases.forget(tag);
    this.ctx.storage.sql.exec('UPDATE job SET is_assembling = 0 WHERE tag = ?', tag);
  }

  /** Sends all unfinished shards again: the queues have lost their messages. */
  async resend(): Promise<void> {
    const job = this.#job();
    if (!job) return;
    this.#leases.expireAll(job.tag);
    await this.#advance();
  }

  /** Erases the object: the job has ended. */
  async end(): Promise<void> {
    this.#closed = true;
    try {
      await erase(this.ctx.storage);
    } catch (error) {
      this.#closed = false;
      throw error;
    }
  }

  /** 0…1; does not fall while the object is in memory. 0 for a job that has not begun. */
  async fraction(): Promise<number> {
    const job = this.#job();
    if (!job) return 0;
    const parts = this.#leases.counts(job.tag).done;
    const done = [...this.#fractions.values()].reduce((sum, value) => sum + value, parts);
    const isRead = job.shardCount !== undefined;
    const ingested = isRead ? 1 : this.#ingested;
    // While the recording is being read, the number of shards is estimated from the share that was read.
    const expected = job.shardCount ?? Math.max(done, this.#fractions.size + 1) / Math.max(0.05, ingested);
    const analysed = (1 - INGEST_SHARE - ASSEMBLE_SHARE) * Math.min(1, done / expected);
    this.#shown = Math.max(this.#shown, INGEST_SHARE * ingested + analysed);
    return this.#shown;
  }

  override async alarm(): Promise<void> {
    if (this.#job()) await this.#advance(true);
  }

  /**
   * Sends lost shards again, hands out new ones and starts the assembly. Every call that changes the state runs it, so
   * that the job continues even if the platform has given up the alarm.
   */
  async #advance(isAlarm = false): Promise<void> {
    const ports = jobPorts(this.env);
    try {
      // Set the next alarm first, so that a failure below is retried.
      if (isAlarm) await this.ctx.storage.setAlarm(ports.now() + this.#pauseMs);
      if (await this.#hasEnded(ports, isAlarm)) return await this.end();
      await this.#send(ports);
      await this.#startAssemblyIfComplete(ports);
      this.#faults = 0;
    } catch (error) {
      this.#faults++;
      ports.log('warn', 'progress_not_advanced', { jobId: this.#job()?.id, error: String(error) });
    }
    await this.#setAlarm(isAlarm, this.#faults > 0 ? ports.now() + this.#pauseMs : undefined);
  }

  get #pauseMs(): number {
    return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#faults);
  }

  /** Reads D1 only if a lease has run out, as all do when a job is canceled, or if no shard is handed out. */
  async #hasEnded(ports: JobPorts, isAlarm: boolean): Promise<boolean> {
    const job = this.#job();
    if (!job) return false;
    const { earliestLease } = this.#leases.counts(job.tag);
    const isLost = earliestLease !== undefined && earliestLease <= ports.now();
    if (!isLost && !(isAlarm && earliestLease === undefined)) return false;
    const record = await ports.store.find(job.id);
    return !record || isTerminal(record.status);
  }

  async #send(ports: JobPorts): Promise<void> {
    const job = this.#job();
    if (!job) return;
    const now = ports.now();
    const lost = this.#leases.expired(job.tag, now);
    const queued = [...lost, ...this.#handOut(job, now)].map((shard) => this.#leased(job, shard, now));
    if (queued.length === 0) return;
    if (lost.length > 0) ports.log('warn', 'shards_resent', { jobId: job.id, shards: lost.length });
    try {
      await ports.queue.sendAll(queued);
    } catch (error) {
      for (const { message } of queued)
        if (message.step === 'shard') this.#leases.putBack(job.tag, message.shard, now + this.#pauseMs);
      throw error;
    }
  }

  /** Hands out the next shards, as many as the window has room for. */
  #handOut({ tag, ready, shardCount }: Job, now: number): HandedOut[] {
    const { next, done } = this.#leases.counts(tag);
    // Whether a job is short is known when its recording was read, or when it exceeds the limit of a short job.
    const limit = shardCount ?? (ready > SHORT_SHARDS ? ready : 0);
    const count = Math.max(0, Math.min(limit - next, WINDOW_SHARDS - (next - done)));
    const shards = Array.from({ length: count }, (_, i) => ({ shard: next + i, starts: 0 }));
    for (const { shard } of shards) this.#leases.handOut(tag, shard, now + QUEUE_LEASE_MS);
    return shards;
  }

  /** Renews the lease of `analyse` in D1: the watchdog of the local service reads there whether the queues work. */
  async #renewAnalyseLease(): Promise<void> {
    const job = this.#job();
    const now = Date.now();
    if (!job || this.env.ALLOW_LOOPBACK !== '1' || now - this.#renewedAt < RENEW_EVERY_MS) return;
    this.#renewedAt = now;
    const row = outboxId({ step: 'analyse', jobId: job.id });
    await jobPorts(this.env)
      .store.renewLease(row, now + LEASE_MS)
      .catch(() => undefined);
  }

  /** Makes the message of a shard and starts its lease at the time when the message is due. */
  #leased({ id, tag, shardCount }: Job, { shard, starts }: HandedOut, now: number): Queued {
    const pauseMs = starts < 2 ? 0 : Math.min(MAX_RESEND_PAUSE_MS, FIRST_RESEND_PAUSE_MS * 2 ** (starts - 2));
    this.#leases.putBack(tag, shard, now + pauseMs + QUEUE_LEASE_MS);
    const isShort = shardCount !== undefined && shardCount <= SHORT_SHARDS;
    return {
      message: { step: 'shard', jobId: id, shard, ...(isShort && { isShort }) },
      delaySeconds: pauseMs / 1000,
    };
  }

  /** Starts the assembly once: only the first call moves the job's row in the outbox to that step. */
  async #startAssemblyIfComplete(ports: JobPorts): Promise<void> {
    const job = this.#job();
    if (job?.shardCount === undefined || job.isAssembling) return;
    if (this.#leases.counts(job.tag).done < job.shardCount) return;
    const isMoved = await ports.store.nextStep(job.id, ['analyse'], 'assemble', ports.now());
    if (isMoved) await dispatch(ports, { step: 'assemble', jobId: job.id });
    if (!this.#closed) this.ctx.storage.sql.exec('UPDATE job SET is_assembling = 1');
  }

  /**
   * Sets the alarm to the earliest lease.
   *
   * @param isExact whether to move an earlier alarm as well; usually an early alarm costs less than a write per call
   * @param latest the alarm is set to this time at the latest, milliseconds since the Unix epoch
   */
  async #setAlarm(isExact = false, latest = Number.POSITIVE_INFINITY): Promise<void> {
    const job = this.#job();
    if (!job) return;
    const { earliestLease } = this.#leases.counts(job.tag);
    const dueAt = Math.max(Date.now(), Math.min(latest, earliestLease ?? Date.now() + IDLE_MS));
    const alarmAt = await this.ctx.storage.getAlarm();
    // The platform has given up an alarm in the past.
    const isSoonEnough = alarmAt !== null && alarmAt <= dueAt && alarmAt > Date.now();
    if (isExact || !isSoonEnough) await this.ctx.storage.setAlarm(dueAt);
  }

  #job(): Job | undefined {
    if (this.#closed) return undefined;
    const [row] = this.ctx.storage.sql.exec('SELECT * FROM job').toArray();
    if (!row) return undefined;
    return {
      id: String(row.id),
      tag: String(row.tag),
      shardCount: row.shard_count === null ? undefined : Number(row.shard_count),
      ready: Number(row.ready),
      isAssembling: row.is_assembling === 1,
    };
  }
}
