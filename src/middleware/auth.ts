import type { KeyClaims, Scope } from '../jobs/app-services.ts';
import type { AppContext, AppMiddleware } from './context.ts';
import { FLOOD_REFUSAL } from './flood-limits.ts';
import { refuse } from './refusals.ts';

/** A key of ours is some 400 characters long; nothing near this bound is one. */
const MAX_TOKEN_CHARS = 4096;
const BEARER = /^Bearer +(\S+) *$/i;
/** Another scheme, or a key without one, is no key that could be wrong. */
const BEARER_SCHEME = /^Bearer +\S/i;

const KEY_CHECK_MS = 15_000;

/** Whether the key of a request that is answered for minutes is still good and has the scope, looked at four times a minute. */
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
