import type { AppMiddleware } from './context.ts';
import { type Refusal, refuse } from './refusals.ts';

/** The platform counts in windows of a minute and does not tell how much of one is left. */
export const FLOOD_REFUSAL: Refusal = { kind: 'too_many_requests', retryAfterSeconds: 60 };

/**
 * Refuses a client's address that floods the service, before anything else is done for it. The header is Cloudflare's:
 * a client cannot set it. Where it is absent, nothing stands in front of the Worker.
 */
export const limitClient: AppMiddleware = async (c, next) => {
  const address = c.req.header('CF-Connecting-IP');
  const isAllowed = address === undefined || (await c.get('services').floodLimits.allowsClient(address));
  return isAllowed ? next() : refuse(c, FLOOD_REFUSAL);
};
