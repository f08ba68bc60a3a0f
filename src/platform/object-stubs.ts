import type { CopiesPort, ProgressPort, ShardStart } from '../jobs/job-ports.ts';
import type { LiveObjects, StreamSetup, StreamTokenKind } from '../jobs/live-ports.ts';

/**
 * Binding of a class of Durable Objects, typed by the interface that the class implements. The class itself cannot be
 * imported here: it imports the services, which import this file.
 */
export type ObjectNamespace<Methods> = DurableObjectNamespace<Methods & Rpc.DurableObjectBranded>;

/** Methods of `durable-objects/job-progress.ts`. */
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

/** `ProgressPort` over one Durable Object per job. */
export function createProgress(namespace: ObjectNamespace<ProgressRpc>): ProgressPort {
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId));
  return {
    begin: (jobId, tag) => of(jobId).begin(jobId, tag),
    reportIngest: (jobId, share) => of(jobId).reportIngest(share),
    ready: (jobId, tag, shards) => of(jobId).ready(tag, shards),
    expect: (jobId, tag, shardCount) => of(jobId).expect(tag, shardCount),
    // An RPC result has methods of its own; copy the plain value.
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

/** Methods of `durable-objects/source-copy.ts`. */
export interface CopyRpc {
  request(jobId: string, url: string, maxBytes: number): Promise<void>;
}

/** `CopiesPort` over one Durable Object per job. */
export function createCopies(namespace: ObjectNamespace<CopyRpc>): CopiesPort {
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId));
  return { request: (jobId, url, maxBytes) => of(jobId).request(jobId, url, maxBytes) };
}

/** Headers that pass the token to the stream's object. */
export const TOKEN_HEADERS: Readonly<Record<StreamTokenKind, string>> = {
  connect: 'X-Stream-Token',
  resume: 'X-Resume-Token',
};

/** Reasons why the object refuses an upgrade, by status. */
const REFUSALS = { 401: 'bad_stream_token', 403: 'origin_not_allowed', 503: 'overloaded' } as const;

/** Methods of `durable-objects/live-stream.ts`; the upgrade is a request. */
export interface LiveRpc {
  open(setup: StreamSetup): Promise<boolean>;
  discard(): Promise<void>;
  wake(): Promise<boolean>;
}

/** `LiveObjects` over one Durable Object per stream. */
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
