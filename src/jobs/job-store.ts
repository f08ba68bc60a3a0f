import type { Result } from '../audio/audio-ports.ts';
import type { CreateJob, JobStatus } from './app-services.ts';
import type { JobStep, OutboxMessage, WebhookMessage } from './job-messages.ts';
import type { IngestedLength, JobRecord, StoredSpec } from './job-record.ts';

/** A job to be stored. */
export type NewJob = StoredSpec &
  Pick<CreateJob, 'accountId' | 'idempotency'> & { readonly id: string; readonly now: number };

/** A job as the list shows it. */
export interface ListedJob {
  readonly id: string;
  readonly status: JobStatus;
  readonly createdAt: number;
}

/** Position in the list of an account's jobs: after this job. */
export interface ListPosition {
  readonly createdAt: number;
  readonly id: string;
}

/** A deleted job; `deletedAt` is in milliseconds since the Unix epoch. */
export interface DeletedJob {
  readonly id: string;
  readonly deletedAt: number;
}

/** How long an idempotency key returns its job (contract §2). */
export const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

/** Output and bill of a successful job. */
export interface JobOutcome {
  readonly outputKey: string;
  /** Audio that is billed, for the usage record. */
  readonly billedSeconds: number;
  /** Price for an account without subscription, in seconds of credit. */
  readonly creditSeconds: number;
  /** Transcribed audio, for a separate usage record; undefined without a transcription. */
  readonly transcribedSeconds?: number;
}

/** A message that must still be handled. */
export interface OutboxRow {
  readonly id: string;
  readonly message: OutboxMessage;
  readonly dueAt: number;
  readonly leaseUntil: number;
  readonly starts: number;
}

/** A step that a handler has begun. */
export interface StepStart {
  /** Number of starts without a known end, this one included. */
  readonly starts: number;
  /** Undefined if the job was deleted. */
  readonly job?: JobRecord;
  /** Set if the last start has just crashed: seconds until the next one may begin. This start then does not count. */
  readonly pauseSeconds?: number;
}

/** Position in the order of the leases: after this row. */
export interface OutboxPosition {
  readonly leaseUntil: number;
  readonly id: string;
}

export interface OutboxPage {
  /** The rows that this version of the service can read. */
  readonly rows: readonly OutboxRow[];
  /** Where the next page begins; undefined on the last one. */
  readonly next?: OutboxPosition;
}

/** Reads stored jobs, deleted ones excluded. */
export interface JobReader {
  find(jobId: string): Promise<JobRecord | undefined>;
  findOwned(accountId: string, jobId: string): Promise<JobRecord | undefined>;
}

/** New jobs and their idempotency keys. */
export interface JobCreation {
  create(input: NewJob): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>>;
  /** Job of an idempotency key; undefined if the key is unused. */
  findReplay(
    accountId: string,
    idempotencyKey: string,
    now: number,
  ): Promise<{ readonly jobId: string; readonly bodyHash: string } | undefined>;
}

/** Waiting jobs of accounts that have reached their limit of work. */
export interface JobAdmission {
  /** Admits the account's waiting jobs in their order, as far as its limit of work allows. @returns their ids */
  admit(accountId: string, now: number): Promise<string[]>;
  /** Accounts whose limit of work allows their next waiting job, sorted by id, after the id `after`. */
  waitingAccounts(limit: number, after: string): Promise<string[]>;
  /** Position at which the next run of a sweep continues, stored by its last run; '' without one. */
  sweepPosition(sweep: string): Promise<string>;
  setSweepPosition(sweep: string, position: string): Promise<void>;
}

/** State changes of the ingest step. */
export interface JobIngest {
  /** created or pending → running: reading begins. False if the job is already running, has ended or does not exist. */
  start(jobId: string, now: number): Promise<boolean>;
  /**
   * Reserves credit for the first `seconds` of a recording of unknown length: only paid shards are analysed. False if
   * the account cannot pay, or the job is not running.
   */
  reserve(job: JobRecord, seconds: number, now: number): Promise<boolean>;
  /**
   * Moves a job whose recording was read as a whole from `ingest` to `analyse`. False, and nothing is written, if the
   * account cannot pay for it, or the job is not at `ingest`.
   */
  finishIngest(job: JobRecord, recording: IngestedLength, now: number): Promise<boolean>;
}

/** The current step of a job, and its lease. */
export interface JobSteps {
  /**
   * Counts the start of a message's handler and sets the lease. Undefined if the message has no row: it is a duplicate
   * of a handled message.
   */
  begin(message: OutboxMessage, leaseUntil: number, now: number): Promise<StepStart | undefined>;
  /** Extends the lease of a step in work. False if its job has ended. */
  keep(jobId: string, outboxId: string, leaseUntil: number): Promise<boolean>;
  /** Schedules another start of the step at `dueAt`. @param isForgiven whether this start does not count */
  putBack(outboxId: string, dueAt: number, isForgiven: boolean): Promise<void>;
  /** The step continues in another invocation: resets the number of starts. */
  handOver(outboxId: string, leaseUntil: number): Promise<void>;
  /**
   * Replaces the current step of a job by the next one. False if the current step is none of `from`, for example after
   * the job's end.
   */
  nextStep(jobId: string, from: readonly JobStep[], to: JobStep, now: number): Promise<boolean>;
  /** Deletes the row of a handled message. */
  settle(outboxId: string): Promise<void>;
}

/** Messages that must still be handled. */
export interface JobOutbox {
  outboxRow(outboxId: string): Promise<OutboxRow | undefined>;
  renewLease(outboxId: string, leaseUntil: number): Promise<void>;
  /** Uses one statement for all leases: the platform limits the statements of an invocation. */
  renewLeases(leases: readonly { readonly id: string; readonly leaseUntil: number }[]): Promise<void>;
  /**
   * Messages whose lease ran out before `before`, oldest first; optionally of one job, or after a position.
   */
  overdue(
    before: number,
    limit: number,
    query?: { readonly jobId?: string; readonly after?: OutboxPosition },
  ): Promise<OutboxPage>;
}

/** Deliveries of a webhook. */
export interface JobDeliveries {
  /** Versions of the secret to sign with, the current one first; none for a deleted account. */
  webhookSecretVersions(accountId: string, now: number): Promise<number[]>;
  /**
   * Replaces a handled message by its retry. False, and nothing is written, if another copy of the handled message has
   * already done so.
   */
  reschedule(outboxId: string, handled: WebhookMessage, message: WebhookMessage, dueAt: number): Promise<boolean>;
}

/** Ends of a job. A job ends once: of two concurrent calls only one succeeds. */
export interface JobEndings {
  /** running → succeeded, with the usage record, the credit and the webhook message in one transaction. */
  succeed(jobId: string, outcome: JobOutcome, now: number): Promise<boolean>;
  /** any non-terminal state → failed, with the webhook message. */
  fail(jobId: string, error: { code: string; message: string }, now: number): Promise<boolean>;
  /** any non-terminal state → canceled, with the webhook message. */
  cancel(jobId: string, error: { code: string; message: string }, now: number): Promise<boolean>;
  /** Leaves a tombstone without content; deletes messages and idempotency key. False if the account has no such job. */
  remove(accountId: string, jobId: string, now: number): Promise<boolean>;
}

/** Lists for the owners of jobs. */
export interface JobLists {
  /** An account's jobs after a position, newest first, deleted ones left out. */
  list(
    accountId: string,
    query: { readonly status?: JobStatus; readonly after?: ListPosition; readonly limit: number },
  ): Promise<ListedJob[]>;
}

/** Queries and deletions of the sweeps. */
export interface JobRetention {
  /** Jobs that have been running since before `before`. */
  runningSince(before: number, limit: number): Promise<string[]>;
  /** Jobs that ended before `before` and still hold an output. */
  expired(before: number, limit: number): Promise<{ id: string; outputKey?: string }[]>;
  /** Deleted jobs whose objects may still be stored, oldest deletion first. */
  deleted(limit: number, after?: DeletedJob): Promise<DeletedJob[]>;
  markCleaned(jobIds: readonly string[], now: number): Promise<void>;
  /** The given ids whose jobs are unfinished. */
  unfinished(jobIds: readonly string[]): Promise<Set<string>>;
  /** Object keys of expired media that no unfinished job needs. */
  expiredMedia(now: number, limit: number): Promise<string[]>;
  /** Deletes the rows of media whose objects were deleted. */
  removeMedia(objectKeys: readonly string[]): Promise<void>;
  expireIdempotencyKeys(before: number): Promise<void>;
  /**
   * Deletes at most `limit` rows of jobs and of live streams that ended before `endedBefore`; keeps their usage by day
   * and kind. @returns the largest number of rows deleted of one kind
   */
  forget(endedBefore: number, limit: number): Promise<number>;
}

/**
 * Jobs and their outbox. Every method is one transaction. It writes a state change together with the resulting
 * messages, so that a crash leaves no job without its next step.
 */
export interface JobStore
  extends JobReader,
    JobCreation,
    JobAdmission,
    JobIngest,
    JobSteps,
    JobOutbox,
    JobDeliveries,
    JobEndings,
    JobLists,
    JobRetention {}
