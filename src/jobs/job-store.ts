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

/** A place in the list of an account's jobs: after this one. */
export interface ListPosition {
  readonly createdAt: number;
  readonly id: string;
}

/** A job that was deleted, and when. */
export interface DeletedJob {
  readonly id: string;
  readonly deletedAt: number;
}

/** How long an idempotency key stands for its job (contract §2). */
export const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

/** What a successful job leaves behind. */
export interface JobOutcome {
  readonly outputKey: string;
  /** Audio that is billed, for the usage record. */
  readonly billedSeconds: number;
  /** What an account without subscription pays, in seconds of credit. */
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
  /** How often it was begun without an end that is known, this time included. */
  readonly starts: number;
  /** Undefined when it is gone, as after its deletion. */
  readonly job?: JobRecord;
  /** Seconds until it may be begun, for one that has just died; then this start does not count. */
  readonly pauseSeconds?: number;
}

/** A place in the order of the leases: after this row. */
export interface OutboxPosition {
  readonly leaseUntil: number;
  readonly id: string;
}

export interface OutboxPage {
  /** Those that this version of the service can read. */
  readonly rows: readonly OutboxRow[];
  /** Where the next page begins; undefined on the last one. */
  readonly next?: OutboxPosition;
}

/** Jobs as they are stored; a deleted one is not found. */
export interface JobReader {
  find(jobId: string): Promise<JobRecord | undefined>;
  findOwned(accountId: string, jobId: string): Promise<JobRecord | undefined>;
}

/** New jobs and the idempotency keys that stand for them. */
export interface JobCreation {
  create(input: NewJob): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>>;
  /** What an idempotency key stands for; undefined for one that is free. */
  findReplay(
    accountId: string,
    idempotencyKey: string,
    now: number,
  ): Promise<{ readonly jobId: string; readonly bodyHash: string } | undefined>;
}

/** Waiting jobs of accounts that have too much in work. */
export interface JobAdmission {
  /**
   * Has the account's next waiting jobs begin, in their order, as far as its work allows. @returns their ids
   */
  admit(accountId: string, now: number): Promise<string[]>;
  /** Accounts whose limit of work allows their next waiting job, sorted by id, after the id `after`. */
  waitingAccounts(limit: number, after: string): Promise<string[]>;
  /** Position at which the next run of a sweep continues, stored by its last run; '' without one. */
  sweepPosition(sweep: string): Promise<string>;
  setSweepPosition(sweep: string, position: string): Promise<void>;
}

/** The reading of a recording: what it begins, sets aside and finds. */
export interface JobIngest {
  /** created or pending → running: reading begins. False when the job runs already, has ended or does not exist. */
  start(jobId: string, now: number): Promise<boolean>;
  /**
   * Sets credit aside for so much of the recording, while its length is not known: shards are analysed only if they are
   * paid for. False when the account cannot pay for it, or the job runs no more.
   */
  reserve(job: JobRecord, seconds: number, now: number): Promise<boolean>;
  /**
   * The recording was read as a whole, and the account can pay for it: `analyse` is the next step in the place of
   * `ingest`. False, and nothing is written, when it cannot, or the job is not at that step.
   */
  finishIngest(job: JobRecord, recording: IngestedLength, now: number): Promise<boolean>;
}

/** The step that a job is at, and who works on it. */
export interface JobSteps {
  /**
   * A handler begins to work on the message: counts that and sets the lease. Undefined when there is no such message,
   * and it is a leftover copy of one that was handled.
   */
  begin(message: OutboxMessage, leaseUntil: number, now: number): Promise<StepStart | undefined>;
  /** Prolongs the lease of a step in work. False when its job has ended. */
  keep(jobId: string, outboxId: string, leaseUntil: number): Promise<boolean>;
  /** The step is to be begun again at that time. @param isForgiven whether this start does not count */
  putBack(outboxId: string, dueAt: number, isForgiven: boolean): Promise<void>;
  /** The step continues in another invocation: how often it was begun counts from here. */
  handOver(outboxId: string, leaseUntil: number): Promise<void>;
  /**
   * Puts the next step of a job in the place of the one that it is at. False when it is at none of those, as it is when
   * it has ended.
   */
  nextStep(jobId: string, from: readonly JobStep[], to: JobStep, now: number): Promise<boolean>;
  /** The message has been handled. */
  settle(outboxId: string): Promise<void>;
}

/** Messages on their way. */
export interface JobOutbox {
  outboxRow(outboxId: string): Promise<OutboxRow | undefined>;
  renewLease(outboxId: string, leaseUntil: number): Promise<void>;
  /** All in one statement: the platform counts those of an invocation. */
  renewLeases(leases: readonly { readonly id: string; readonly leaseUntil: number }[]): Promise<void>;
  /**
   * Messages whose lease ran out before `before`, oldest first; of one job when it is given, after a place when one
   * is.
   */
  overdue(
    before: number,
    limit: number,
    query?: { readonly jobId?: string; readonly after?: OutboxPosition },
  ): Promise<OutboxPage>;
}

/** Deliveries of a webhook. */
export interface JobDeliveries {
  /** The versions of the secret to sign with, the current one first; none for an account that is gone. */
  webhookSecretVersions(accountId: string, now: number): Promise<number[]>;
  /**
   * Puts a later message in the place of a handled one (webhook retries). False, and nothing is written, where another
   * copy of that has done so.
   */
  reschedule(outboxId: string, handled: WebhookMessage, message: WebhookMessage, dueAt: number): Promise<boolean>;
}

/** Every end of a job. Each happens once: of two at the same moment one wins. */
export interface JobEndings {
  /** running → succeeded, with the usage record, the credit and the webhook message: all or nothing, once. */
  succeed(jobId: string, outcome: JobOutcome, now: number): Promise<boolean>;
  /** any non-terminal state → failed, with the webhook message. */
  fail(jobId: string, error: { code: string; message: string }, now: number): Promise<boolean>;
  /** any non-terminal state → canceled, with the webhook message. */
  cancel(jobId: string, error: { code: string; message: string }, now: number): Promise<boolean>;
  /** Leaves a tombstone without content; messages and idempotency key go. False when the account has no such job. */
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

/** What the sweeps ask for and delete. */
export interface JobRetention {
  /** Jobs that have been running since before that moment. */
  runningSince(before: number, limit: number): Promise<string[]>;
  /** Jobs that ended before `before` and still hold an output. */
  expired(before: number, limit: number): Promise<{ id: string; outputKey?: string }[]>;
  /** Deleted jobs whose objects may still be there, oldest deletion first. */
  deleted(limit: number, after?: DeletedJob): Promise<DeletedJob[]>;
  markCleaned(jobIds: readonly string[], now: number): Promise<void>;
  /** Of the given ids, those of jobs that still work. */
  unfinished(jobIds: readonly string[]): Promise<Set<string>>;
  /** Object keys of media past their time, without those that an unfinished job needs. */
  expiredMedia(now: number, limit: number): Promise<string[]>;
  /** Forgets media whose objects are gone. */
  removeMedia(objectKeys: readonly string[]): Promise<void>;
  expireIdempotencyKeys(before: number): Promise<void>;
  /**
   * Deletes at most `limit` rows of jobs and of live streams that ended before `endedBefore`; keeps their usage by day
   * and kind. @returns the largest number of rows deleted of one kind
   */
  forget(endedBefore: number, limit: number): Promise<number>;
}

/**
 * Jobs and their outbox, by step. Every method is one transaction; a state change and the messages that follow from it
 * are written together, so that a process that dies between the two leaves no job without its next step.
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
