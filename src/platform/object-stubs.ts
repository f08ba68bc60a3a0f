import type { CopiesPort, ProgressPort, ShardStart } from '../jobs/job-ports.ts';
import type { LiveObjects, StreamSetup, StreamTokenKind } from '../jobs/live-ports.ts';

/**
 * The binding of a class of Durable Objects, by the methods that are called from outside; the class is held to the same
 * interface. The class itself cannot be named: it imports the services, which import this.
 */
export type ObjectNamespace<Methods> = DurableObjectNamespace<Methods & Rpc.DurableObjectBranded>;

/** What `durable-objects/job-progress.ts` is called with. */
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
export function createProgress(namespace: ObjectNamespace<ProgressRpc>): ProgressPort {
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId));
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

/** What `durable-objects/source-copy.ts` is called with. */
export interface CopyRpc {
  request(jobId: string, url: string, maxBytes: number): Promise<void>;
}

/** `CopiesPort` over one Durable Object a job. */
export function createCopies(namespace: ObjectNamespace<CopyRpc>): CopiesPort {
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId));
  return { request: (jobId, url, maxBytes) => of(jobId).request(jobId, url, maxBytes) };
}

/** Carry the token to the stream's object. */
export const TOKEN_HEADERS: Readonly<Record<StreamTokenKind, string>> = {
  connect: 'X-Stream-Token',
  resume: 'X-Resume-Token',
};

/** What the object refuses an upgrade for. */
const REFUSALS = { 401: 'bad_stream_token', 403: 'origin_not_allowed', 503: 'overloaded' } as const;

/** What `durable-objects/live-stream.ts` is called with, beside the upgrade. */
export interface LiveRpc {
  open(setup: StreamSetup): Promise<boolean>;
  discard(): Promise<void>;
  wake(): Promise<boolean>;
}

/** `LiveObjects` over one Durable Object a stream. */
export function createLiveObjects(namespace: ObjectNamespace<LiveRpc>): LiveObjects {
  const stub = (streamId: string) => namespace.get(namespace.idFromName(streamId));
  return {
    open: (setup) => stub(setup.streamId).open(setup),
    discard: (streamId) => stub(streamId).discard(),
    wake: (streamId) => stub(streamId).wake(),
    async connect(streamId, { kind, token, origin }) {
      const headers = new Headers({ Upgrade: 'websocket', [TOKEN_HEADERS[kind]]: token });
      if (origin !== undefined) headers.set('Origin', origin);
      const { webSocket, status } = await stub(streamId).fetch('https://live/', { headers });
      if (webSocket) return { ok: true, value: webSocket };
      const refusal = REFUSALS[status as keyof typeof REFUSALS];
      if (!refusal) throw new Error(`the object of a stream answered ${status}`);
      return { ok: false, error: { kind: refusal } };
    },
  };
}
