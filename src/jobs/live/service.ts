import type { LiveService } from '../app-services.ts';
import { createStream } from './create.ts';
import type { LiveObjects, LiveStore, StreamTokens } from './ports.ts';

/** `LiveService` over rows and objects of streams. */
export function createLiveService(ports: {
  readonly store: LiveStore;
  readonly objects: LiveObjects;
  readonly tokens: StreamTokens;
  readonly now: () => number;
  readonly tokenMs: number;
}): LiveService {
  return {
    async create(accountId, request, origins) {
      const id = crypto.randomUUID();
      const created = await createStream(ports, { streamId: id, accountId, request, origins }, ports.tokenMs);
      return created.ok ? { ok: true, value: { id, token: created.value.token } } : created;
    },
    async find(accountId, streamId) {
      const stream = await ports.store.find(streamId);
      return stream?.accountId === accountId ? stream : undefined;
    },
    async connect(streamId, upgrade) {
      // A forged address costs neither a query nor an object.
      if (!(await ports.tokens.verify(upgrade.kind, upgrade.token, streamId, ports.now())))
        return { ok: false, error: { kind: 'bad_stream_token' } };
      return ports.objects.connect(streamId, upgrade);
    },
  };
}
