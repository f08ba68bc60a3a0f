import { createWebhookClient } from '../../src/platform/webhook-client.ts';

/** Posts a webhook to the URL in the request body, loopback allowed, and answers with the result. */
export default {
  async fetch(request: Request): Promise<Response> {
    const client = createWebhookClient({ allowLoopback: true });
    return Response.json(await client.post(await request.text(), Uint8Array.of(123, 125), {}));
  },
};
