import { routePath } from 'hono/route';
import type { Account, AppServices, KeyClaims, Scope } from '../jobs/app-services.ts';
import type { AppContext, AppMiddleware } from './context.ts';
import { type Refusal, refuse } from './refusals.ts';

/** A key of ours is some 400 characters long; nothing near this bound is one. */
const MAX_TOKEN_CHARS = 4096;
const BEARER = /^Bearer +(\S+) *$/i;
/** Another scheme, or a key without one, is no key that could be wrong. */
const BEARER_SCHEME = /^Bearer +\S/i;

const KEY_CHECK_MS = 15_000;

/**
 * Whether the key of a request that is answered for minutes is still good and has the scope, looked at four times a
 * minute.
 */
export function keyCheck(c: AppContext, scope: Scope): () => Promise<boolean> {
  let checkedAt = Date.now();
  let isGood = true;
  return async () => {
    if (isGood && Date.now() - checkedAt >= KEY_CHECK_MS) {
      checkedAt = Date.now();
      const claims = await claimsOf(c);
      const principal = claims && (await c.get('services').keys.find(claims));
      isGood = principal?.scopes.has(scope) === true;
    }
    return isGood;
  };
}

async function claimsOf(c: AppContext): Promise<KeyClaims | undefined> {
  const token = BEARER.exec(c.req.header('Authorization') ?? '')?.[1];
  return token && token.length <= MAX_TOKEN_CHARS ? c.get('services').keys.read(token) : undefined;
}

/**
 * Verifies the bearer key and puts its principal into the context; 401 otherwise. A key that floods the service is
 * refused before the database is asked for it.
 */
export const authenticate: AppMiddleware = async (c, next) => {
  if (!BEARER_SCHEME.test(c.req.header('Authorization') ?? ''))
    return refuse(c, { kind: 'unauthorized', reason: 'missing' });
  const { keys, floodLimits } = c.get('services');
  const claims = await claimsOf(c);
  if (claims && !(await floodLimits.allowsKey(claims.keyId))) return refuse(c, FLOOD_REFUSAL);
  const principal = claims && (await keys.find(claims));
  if (!principal) return refuse(c, { kind: 'unauthorized', reason: 'invalid' });
  c.set('principal', principal);
  return next();
};

/** 403 where the key lacks the scope. Comes behind `authenticate`. */
export function requireScope(scope: Scope): AppMiddleware {
  return async (c, next) => {
    if (!c.get('principal').scopes.has(scope)) return refuse(c, { kind: 'missing_scope', scope });
    return next();
  };
}

/** The platform counts in windows of a minute and does not report how much of one is left. */
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

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Counts the request in its account's window for the endpoint and reports the count to the client. A request beyond
 * the limit goes on: other faults of it are reported first, and `endpoint.ts` refuses it right before its work
 * begins. Comes behind `authenticate`, before everything that may refuse.
 *
 * @param endpoint route pattern; undefined for addresses and methods that there are none for, which share one window
 */
export function countRequest(endpoint?: string): AppMiddleware {
  return async (c, next) => {
    const { account } = c.get('principal');
    const method = c.req.method === 'HEAD' ? 'GET' : c.req.method;
    const kind = READS.has(method) ? 'get' : 'post';
    const name = endpoint === undefined ? `other ${kind}` : `${method} ${endpoint}`;
    const headers = await countCall(c, account.id, account.rateLimits[kind], name);
    await next();
    for (const [header, value] of headers) c.res.headers.set(header, value);
  };
}

/**
 * The same for an address that is itself the credential: the endpoint calls it as soon as the address has named the
 * account.
 *
 * @param limit calls in a window
 */
export async function countAddressCall(c: AppContext, accountId: string, limit: number): Promise<void> {
  const headers = await countCall(c, accountId, limit, `${c.req.method} ${routePath(c)}`);
  for (const [header, value] of headers) c.header(header, value);
}

async function countCall(c: AppContext, accountId: string, limit: number, name: string): Promise<[string, string][]> {
  const { count, resetMs } = await c.get('services').quota.count(accountId, name);
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000));
  c.set('rate', { exceeded: count > limit, resetSeconds });
  return [
    ['X-RateLimit-Limit', String(limit)],
    ['X-RateLimit-Remaining', String(Math.max(0, limit - count))],
    ['X-RateLimit-Reset', String(resetSeconds)],
  ];
}

/** Whether the account may start another job or stream, beside those that it has begun. */
export async function canPay({ credit }: AppServices, account: Account): Promise<boolean> {
  return account.subscribed || (await credit.suffices(account.id));
}
