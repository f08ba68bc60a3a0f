import { z } from 'zod';

/** Queue message of a step of a job. Small by design: all other data is in D1 and R2. */
const jobMessageSchema = z.discriminatedUnion('step', [
  z.object({ step: z.literal('ingest'), jobId: z.string() }),
  z.object({ step: z.literal('analyse'), jobId: z.string() }),
  z.object({
    step: z.literal('shard'),
    jobId: z.string(),
    shard: z.number().int().nonnegative(),
    /** Whether the job has at most `SHORT_SHARDS` shards. */
    isShort: z.boolean().optional(),
  }),
  z.object({ step: z.literal('assemble'), jobId: z.string() }),
  z.object({ step: z.literal('transcribe'), jobId: z.string() }),
]);
export type JobMessage = z.infer<typeof jobMessageSchema>;
export type ShardMessage = Extract<JobMessage, { step: 'shard' }>;
/**
 * The steps of a whole job: an unfinished job has an outbox row for exactly one of them. `analyse` covers all shards,
 * which the job's object hands out.
 */
export type JobStep = Exclude<JobMessage['step'], 'shard'>;

const RETRY_REASONS = [
  'http_timeout',
  'too_many_redirects',
  'connection_failed',
  'ssl_error',
  'http_error',
  'unknown_error',
] as const;
export type RetryReason = (typeof RETRY_REASONS)[number];

/** One delivery of a job's webhook; `attempt` 0 is the first, 1…3 are the retries. */
const webhookMessageSchema = z.object({
  step: z.literal('webhook'),
  jobId: z.string(),
  attempt: z.number().int().min(0).max(3),
  reason: z.enum(RETRY_REASONS).optional(),
});
export type WebhookMessage = z.infer<typeof webhookMessageSchema>;

export const messageSchema = z.union([jobMessageSchema, webhookMessageSchema]);
export type Message = JobMessage | WebhookMessage;

/** A message that has a row in the outbox. */
export type OutboxMessage = Exclude<Message, ShardMessage>;

/** Primary key of a message's outbox row: a step of a job has one row, even if it is sent several times. */
export const outboxId = ({ jobId, step }: Pick<OutboxMessage, 'jobId' | 'step'>): string => `${jobId}/${step}`;

/**
 * `jobs` and `priority` compute, the other queues wait for external servers: of recordings, transcription engines and
 * webhooks. They do not block each other. `priority` has assemblies and short jobs, which must not wait for the shards
 * of long jobs.
 */
export type QueueName = 'ingest' | 'jobs' | 'priority' | 'transcripts' | 'webhooks';

const QUEUES = {
  ingest: 'ingest',
  analyse: 'priority',
  assemble: 'priority',
  transcribe: 'transcripts',
  webhook: 'webhooks',
} as const satisfies Record<OutboxMessage['step'], QueueName>;

/** Whether a step gets its turn before shards of long jobs. */
export const isUrgent = (message: Message): boolean => message.step !== 'shard' || message.isShort === true;

/** The queue of a message. */
export function queueOf(message: Message): QueueName {
  if (message.step !== 'shard') return QUEUES[message.step];
  return isUrgent(message) ? 'priority' : 'jobs';
}

/** A step that has begun, and its lease. */
export interface BegunStep {
  /** Starts so far without a known end, this one included. */
  readonly starts: number;
  /** Renews the lease. Resolves to false when the job has ended. */
  renew(): Promise<boolean>;
  /** Schedules another start. @param isForgiven this start does not count against the job */
  putBack(dueAt: number, isForgiven: boolean): Promise<void>;
  /** @param pulse called between units of work of at most a few hundred milliseconds */
  run(pulse: () => Promise<void>): Promise<void>;
}
