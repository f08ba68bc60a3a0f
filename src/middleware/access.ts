import { routePath } from 'hono/route';
import type { Account, AppServices, KeyClaims, Scope } from '../jobs/app-services.ts';
import type { AppContext, AppMiddleware } from './context.ts';
import { type Refusal, refuse } from './refusals.ts';

/** API keys have about 400 characters; longer tokens are not parsed. */
const MAX_TOKEN_CHARS = 4096;
const BEARER = /^Bearer +(\S+) *$/i;
/** Without this scheme the key counts as missing, not as invalid. */
const BEARER_SCHEME = /^Bearer +\S/i;

const KEY_CHECK_MS = 15_000;

/**
 * Whether the key of a long-running request is still valid and has the scope, checked four times a minute.
 */
export function keyCheck(c: AppContext, scope: Scope): () => Promise<boolean> {
  let checkedAt = Date.now();
  let isValid = true;
  return async () => {
    if (isValid && Date.now() - checkedAt >= KEY_CHECK_MS) {
      checkedAt = Date.now();
      const claims = await claimsOf(c);
      const principal = claims && (await c.get('services').keys.find(claims));
      isValid = principal?.scopes.has(scope) === true;
    }
    return isValid;
  };
}

async function claimsOf(c: AppContext): Promise<KeyClaims | undefined> {
  const token = BEARER.exec(c.req.header('Authorization') ?? '')?.[1];
  return token && token.length <= MAX_TOKEN_CHARS ? c.get('services').keys.read(token) : undefined;
}

/**
 * Verifies the bearer key and puts its principal into the context; 401 otherwise. A key that floods the service is
 * refused before the database is queried.
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

/** 403 if the key lacks the scope. Must run after `authenticate`. */
export function requireScope(scope: Scope): AppMiddleware {
  return async (c, next) => {
    if (!c.get('principal').scopes.has(scope)) return refuse(c, { kind: 'missing_scope', scope });
    return next();
  };
}

/** The platform counts in windows of a minute and does not report the remaining time. */
export const FLOOD_REFUSAL: Refusal = { kind: 'too_many_requests', retryAfterSeconds: 60 };

/**
 * Refuses requests from an address that floods the service, before any other work. Cloudflare sets the header, and a
 * client cannot. If it is absent, the Worker does not run behind Cloudflare, and addresses are not limited.
 */
export const limitClient: AppMiddleware = async (c, next) => {
  const address = c.req.header('CF-Connecting-IP');
  const isAllowed = address === undefined || (await c.get('services').floodLimits.allowsClient(address));
  return isAllowed ? next() : refuse(c, FLOOD_REFUSAL);
};

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Counts the request in its account's window for the endpoint and reports the count to the client. A request beyond
 * the limit is still checked, because its other faults are reported first; `endpoint.ts` refuses it before its work.
 * Must run after `authenticate` and before every other middleware that may refuse.
 *
 * @param endpoint route pattern; undefined for unknown addresses and methods, which share one window
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
 * Counts a request whose address is the credential; the endpoint calls it when it knows the account.
 *
 * @param limit calls per window
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

/** Whether the account can pay for another job or stream in addition to its unfinished ones. */
export async function canPay({ credit }: AppServices, account: Account): Promise<boolean> {
  return account.subscribed || (await credit.suffices(account.id));
}
