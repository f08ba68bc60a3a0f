import type { LiveObjects, StreamSetup } from '../jobs/live/ports.ts';
import { isToken } from '../jobs/live/token.ts';

/** Carries the token to the stream's object. */
export const TOKEN_HEADER = 'X-Stream-Token';

/** The methods of the live-stream object that may be called from outside. */
interface LiveRpc {
  open(setup: StreamSetup): Promise<void>;
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
    async connect(streamId, token) {
      if (!isToken(token)) return undefined;
      const headers = { Upgrade: 'websocket', [TOKEN_HEADER]: token };
      const response = await stub(streamId).fetch('https://live/', { headers });
      return response.webSocket ?? undefined;
    },
  };
}
