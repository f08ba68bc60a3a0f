import type { ProgressPort, ShardStart } from '../jobs/job-ports.ts';

/** The methods of the job-progress object that may be called from outside. */
export interface ProgressRpc {
  begin(jobId: string, tag: string): Promise<void>;
  reportIngest(share: number): Promise<void>;
  ready(tag: string, shards: number): Promise<void>;
  expect(tag: string, shardCount: number): Promise<void>;
  startShard(shard: number, tag: string): Promise<ShardStart>;
  report(shard: number, tag: string, fraction: number): Promise<boolean>;
  putBack(shard: number, tag: string, dueAt: number, isForgiven: boolean): Promise<void>;
  partDone(shard: number, tag: string): Promise<boolean>;
  restart(tag: string): Promise<void>;
  resend(): Promise<void>;
  end(): Promise<void>;
  fraction(): Promise<number>;
}

/** `ProgressPort` over one Durable Object a job. */
export function createProgress(namespace: DurableObjectNamespace): ProgressPort {
  // The binding's type does not say which class stands after it; `durable-objects/` may not be imported here.
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId)) as unknown as ProgressRpc;
  return {
    begin: (jobId, tag) => of(jobId).begin(jobId, tag),
    reportIngest: (jobId, share) => of(jobId).reportIngest(share),
    ready: (jobId, tag, shards) => of(jobId).ready(tag, shards),
    expect: (jobId, tag, shardCount) => of(jobId).expect(tag, shardCount),
    // What an object answers is an RPC result with methods of its own; the steps want the plain value.
    startShard: async (jobId, shard, tag) => ({ ...(await of(jobId).startShard(shard, tag)) }),
    report: (jobId, shard, tag, fraction) => of(jobId).report(shard, tag, fraction),
    putBack: (jobId, shard, tag, dueAt, isForgiven) => of(jobId).putBack(shard, tag, dueAt, isForgiven),
    partDone: (jobId, shard, tag) => of(jobId).partDone(shard, tag),
    restart: (jobId, tag) => of(jobId).restart(tag),
    resend: (jobId) => of(jobId).resend(),
    end: (jobId) => of(jobId).end(),
    fraction: (jobId) => of(jobId).fraction(),
  };
}
