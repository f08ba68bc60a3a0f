import type { LiveObjects, StreamSetup, StreamTokenKind } from '../jobs/live-ports.ts';

/** Carry the token to the stream's object. */
export const TOKEN_HEADERS: Readonly<Record<StreamTokenKind, string>> = {
  connect: 'X-Stream-Token',
  resume: 'X-Resume-Token',
};

/** What the object refuses an upgrade for. */
const REFUSALS = { 401: 'bad_stream_token', 403: 'origin_not_allowed', 503: 'overloaded' } as const;

/** The methods of the live-stream object that may be called from outside. */
interface LiveRpc {
  open(setup: StreamSetup): Promise<boolean>;
  discard(): Promise<void>;
  wake(): Promise<boolean>;
}

/** `LiveObjects` over one Durable Object a stream. */
export function createLiveObjects(namespace: DurableObjectNamespace): LiveObjects {
  const stub = (streamId: string) => namespace.get(namespace.idFromName(streamId));
  // The binding's type does not say which class stands behind it; `durable-objects/` may not be imported here.
  const rpc = (streamId: string) => stub(streamId) as unknown as LiveRpc;
  return {
    open: (setup) => rpc(setup.streamId).open(setup),
    discard: (streamId) => rpc(streamId).discard(),
    wake: (streamId) => rpc(streamId).wake(),
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
