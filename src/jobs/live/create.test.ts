import { expect, it } from 'vitest';
import { createStream } from './create.ts';

it('answers a refusal also where the object of the refused stream cannot be asked to forget itself', async () => {
  for (const created of ['too_many_streams', 'payment_required'] as const) {
    const ports = {
      store: { create: async () => created },
      objects: {
        open: async () => undefined,
        discard: async () => {
          throw new Error('the object is overloaded');
        },
      },
      now: () => 0,
    };
    const request = { input: { type: 'microphone' }, voiceprints: [] };
    const stream = { streamId: 'one', accountId: 'a', request };
    const result = await createStream(ports as never, stream as never, 60_000);
    expect(result).toMatchObject({ ok: false, error: { kind: created } });
  }
});
