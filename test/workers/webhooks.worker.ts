import { createWebhookClient } from '../../src/platform/webhook-client.ts';

/** Posts to the address that it is asked with, from a service that allows loopback; the answer is what became of it. */
export default {
  async fetch(request: Request): Promise<Response> {
    const client = createWebhookClient({ allowLoopback: true });
    return Response.json(await client.post(await request.text(), Uint8Array.of(123, 125), {}));
  },
};
