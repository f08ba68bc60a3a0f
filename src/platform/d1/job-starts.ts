import { LEASE_MS } from '../../jobs/dispatch.ts';
import { type Message, outboxId } from '../../jobs/messages.ts';
import { hasChanged, insertOutboxWhileRunning, insertShardsWhileRunning } from './statements.ts';

interface Planned {
  readonly shardCount: number;
  readonly durationSeconds: number;
}

/** `JobStore.start` */
export async function startJob(db: D1Database, jobId: string, plan: Planned, now: number): Promise<boolean> {
  const results = await db.batch([
    db
      .prepare(
        `UPDATE jobs SET status = 'running', shard_count = ?2, duration_seconds = ?3, updated_at = ?4
         WHERE id = ?1 AND status IN ('created', 'pending')`,
      )
      .bind(jobId, plan.shardCount, plan.durationSeconds, now),
    insertShardsWhileRunning(db, jobId, plan.shardCount, now, now + LEASE_MS),
    db.prepare('DELETE FROM outbox WHERE id = ?1').bind(`${jobId}/plan`),
  ]);
  return hasChanged(results);
}

/** `JobStore.restart`: the plan before may have had more shards, and its assembly may wait already. */
export async function restartJob(db: D1Database, jobId: string, plan: Planned, now: number): Promise<boolean> {
  const results = await db.batch([
    db
      .prepare(
        `UPDATE jobs SET shard_count = ?2, duration_seconds = ?3, updated_at = ?4 WHERE id = ?1 AND status = 'running'`,
      )
      .bind(jobId, plan.shardCount, plan.durationSeconds, now),
    db.prepare(`DELETE FROM outbox WHERE job_id = ?1 AND queue <> 'webhooks'`).bind(jobId),
    insertShardsWhileRunning(db, jobId, plan.shardCount, now, now + LEASE_MS),
  ]);
  return hasChanged(results);
}

/** `JobStore.requestPlan` */
export async function requestPlan(db: D1Database, jobId: string, now: number): Promise<boolean> {
  const message: Message = { step: 'plan', jobId };
  const results = await db.batch([
    insertOutboxWhileRunning(db, message, now, now + LEASE_MS),
    db
      .prepare(
        `DELETE FROM outbox WHERE job_id = ?1 AND queue = 'jobs' AND EXISTS (SELECT 1 FROM outbox WHERE id = ?2)`,
      )
      .bind(jobId, outboxId(message)),
  ]);
  return hasChanged(results);
}
