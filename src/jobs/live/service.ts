import type { LiveService } from '../app-services.ts';
import { createStream } from './create.ts';
import type { LiveObjects, LiveStore } from './ports.ts';

/** `LiveService` over rows and objects of streams. */
export function createLiveService(ports: {
  readonly store: LiveStore;
  readonly objects: LiveObjects;
  readonly now: () => number;
  readonly tokenMs: number;
}): LiveService {
  return {
    async create(accountId, request) {
      const id = crypto.randomUUID();
      const created = await createStream(ports, { streamId: id, accountId, request }, ports.tokenMs);
      return created.ok ? { ok: true, value: { id, token: created.value.token } } : created;
    },
    async find(accountId, streamId) {
      const stream = await ports.store.find(streamId);
      return stream?.accountId === accountId ? stream : undefined;
    },
    async connect(streamId, token) {
      // An address that never was, or was used, costs no object.
      const stream = await ports.store.find(streamId);
      return stream?.status === 'created' ? ports.objects.connect(streamId, token) : undefined;
    },
  };
}
