import type { ProgressPort } from '../jobs/ports.ts';

/** The methods of the job-progress object that may be called from outside. */
export interface ProgressRpc {
  begin(jobId: string, tag: string): Promise<void>;
  reportIngest(share: number): Promise<void>;
  expect(jobId: string, tag: string, shardCount: number): Promise<void>;
  report(shard: number, fraction: number): Promise<void>;
  partDone(jobId: string, shard: number, tag: string): Promise<boolean>;
  fraction(): Promise<number>;
}

/** `ProgressPort` over one Durable Object a job. */
export function createProgress(namespace: DurableObjectNamespace): ProgressPort {
  // The binding's type does not say which class stands after it; `durable-objects/` may not be imported here.
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId)) as unknown as ProgressRpc;
  return {
    begin: (jobId, tag) => of(jobId).begin(jobId, tag),
    reportIngest: (jobId, share) => of(jobId).reportIngest(share),
    expect: (jobId, tag, shardCount) => of(jobId).expect(jobId, tag, shardCount),
    report: (jobId, shard, fraction) => of(jobId).report(shard, fraction),
    partDone: (jobId, shard, tag) => of(jobId).partDone(jobId, shard, tag),
    fraction: (jobId) => of(jobId).fraction(),
  };
}
