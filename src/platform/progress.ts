import type { ProgressPort } from '../jobs/ports.ts';

/** The methods of the job-progress object that may be called from outside. */
export interface ProgressRpc {
  begin(jobId: string, shardCount: number): Promise<void>;
  report(shard: number, fraction: number): Promise<void>;
  partDone(jobId: string, shard: number, work: string): Promise<boolean>;
  fraction(): Promise<number>;
}

/**
 * `ProgressPort` over one Durable Object a job.
 *
 * @param work of which the parts are that are counted (`workOf`)
 */
export function createProgress(namespace: DurableObjectNamespace, work: string): ProgressPort {
  // The binding's type does not say which class stands behind it; `durable-objects/` may not be imported here.
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId)) as unknown as ProgressRpc;
  return {
    begin: (jobId, shardCount) => of(jobId).begin(jobId, shardCount),
    report: (jobId, shard, fraction) => of(jobId).report(shard, fraction),
    partDone: (jobId, shard) => of(jobId).partDone(jobId, shard, work),
    fraction: (jobId) => of(jobId).fraction(),
  };
}
