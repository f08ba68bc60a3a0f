import { LEASE_MS } from '../../jobs/dispatch.ts';
import { hasChanged, insertOutboxWhileRunning } from './statements.ts';

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
    ...shardMessages(db, jobId, plan, now),
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
    db.prepare(`DELETE FROM outbox WHERE job_id = ?1 AND queue = 'jobs'`).bind(jobId),
    ...shardMessages(db, jobId, plan, now),
  ]);
  return hasChanged(results);
}

const shardMessages = (db: D1Database, jobId: string, { shardCount }: Planned, now: number): D1PreparedStatement[] =>
  Array.from({ length: shardCount }, (_, shard) =>
    insertOutboxWhileRunning(db, { step: 'shard', jobId, shard }, now, now + LEASE_MS),
  );
