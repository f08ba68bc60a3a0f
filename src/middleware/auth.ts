import type { Scope } from '../jobs/app-services.ts';
import type { AppMiddleware } from './context.ts';
import { refuse } from './refusals.ts';

/** A key of ours is some 400 characters long; nothing near this bound is one. */
const MAX_TOKEN_CHARS = 4096;
const BEARER = /^Bearer +(\S+) *$/i;

/** Verifies the bearer key and puts its principal into the context; 401 otherwise. */
export const authenticate: AppMiddleware = async (c, next) => {
  const header = c.req.header('Authorization');
  if (!header) return refuse(c, { kind: 'unauthorized', reason: 'missing' });
  const token = BEARER.exec(header)?.[1];
  if (!token || token.length > MAX_TOKEN_CHARS) return refuse(c, { kind: 'unauthorized', reason: 'invalid' });
  const principal = await c.get('services').keys.verify(token);
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
