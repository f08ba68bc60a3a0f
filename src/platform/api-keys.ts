import { errors, jwtVerify, SignJWT } from 'jose';
import {
  type Account,
  DEFAULT_RATE_LIMITS,
  type KeyClaims,
  type KeyService,
  type RateLimits,
  SCOPES,
  type Scope,
} from '../jobs/app-services.ts';
import { importSigningKey, importSigningKeys, type SigningKeys } from './signed-tokens.ts';

/** The only algorithm that signs or is accepted; `none` and every other one fail verification. */
const ALGORITHM = 'HS256';
const ISSUER = 'rollcall';
/** Distinguishes API keys from upload tickets, which the same secret signs. */
const AUDIENCE = 'rollcall:api';
/** How far the signer's clock may be ahead. */
const CLOCK_SKEW_SECONDS = 60;

/** Claims of an API key. Times are milliseconds since the Unix epoch; the token keeps whole seconds. */
export interface ApiKeyClaims extends KeyClaims {
  readonly issuedAt: number;
  readonly expiresAt?: number;
}

/**
 * Signs an API key: a JWT with the account as `sub`, the key's id as `jti` and the scopes, separated by spaces, as
 * `scope`. It works once `api_keys` holds its row; the row revokes it.
 *
 * @param input.signingKey base64 of at least 32 bytes
 */
export async function signApiKey(input: ApiKeyClaims & { readonly signingKey: string }): Promise<string> {
  const token = new SignJWT({ scope: formatScopes(input.scopes), ...(input.origins && { origins: input.origins }) })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(input.accountId)
    .setJti(input.keyId)
    .setIssuedAt(Math.floor(input.issuedAt / 1000));
  if (input.expiresAt !== undefined) token.setExpirationTime(Math.floor(input.expiresAt / 1000));
  return token.sign(await importSigningKey(input.signingKey));
}

/**
 * Verifies API keys: the signature, the claims and the expiry by jose, then the key's row and its account in D1.
 * @throws Error from `find` when D1 fails: the key may be valid
 */
export function createKeyService({ db, ...signingKeys }: { db: D1Database } & SigningKeys): KeyService {
  const secrets = lazily(() => importSigningKeys(signingKeys));
  return {
    async read(token) {
      for (const secret of await secrets()) {
        const claims = await readClaims(token, secret);
        if (claims) return claims;
      }
      return undefined;
    },
    async find(claims) {
      const found = await findKeyAccount(db, claims.keyId, claims.accountId, Date.now());
      if (!found) return undefined;
      // The scopes of a row may be narrowed after its key was issued.
      const scopes = new Set(claims.scopes.filter((scope) => found.scopes.includes(scope)));
      return { account: found.account, keyId: claims.keyId, scopes, origins: claims.origins };
    },
  };
}

async function readClaims(token: string, secret: CryptoKey): Promise<KeyClaims | undefined> {
  // jose also decodes padding, with which one key would have several spellings.
  if (token.includes('=')) return undefined;
  try {
    const { payload } = await jwtVerify(token, secret, {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: 'JWT',
      requiredClaims: ['sub', 'jti', 'iat'],
    });
    const { sub, jti, scope, origins, iat = 0 } = payload;
    if (iat > Date.now() / 1000 + CLOCK_SKEW_SECONDS) return undefined;
    if (typeof sub !== 'string' || typeof jti !== 'string' || typeof scope !== 'string') return undefined;
    // The signature is valid, so `origins` has the type that `signApiKey` wrote.
    return { accountId: sub, keyId: jti, scopes: parseScopes(scope), origins: origins as string[] | undefined };
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

/** Calls `create` once, at the first use. */
function lazily<T>(create: () => T): () => T {
  let created: { value: T } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

/** NULL means the default. */
interface RateLimitsRow {
  readonly post_limit: number | null;
  readonly get_limit: number | null;
}

interface KeyAccountRow extends RateLimitsRow {
  readonly scopes: string;
  readonly id: string;
  readonly name: string;
  readonly subscribed: number;
  readonly credit_seconds: number;
}

/**
 * The account of a valid key, with the scopes of the key's row.
 * @param now milliseconds since the Unix epoch
 * @returns undefined for a key that is unknown, revoked, expired or another account's
 */
export async function findKeyAccount(
  db: D1Database,
  keyId: string,
  accountId: string,
  now: number,
): Promise<{ readonly account: Account; readonly scopes: readonly Scope[] } | undefined> {
  const row = await db
    .prepare(
      `SELECT k.scopes, a.id, a.name, a.subscribed, a.credit_seconds, a.post_limit, a.get_limit
       FROM api_keys k JOIN accounts a ON a.id = k.account_id
       WHERE k.id = ?1 AND k.account_id = ?2 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?3)`,
    )
    .bind(keyId, accountId, now)
    .first<KeyAccountRow>();
  if (!row) return undefined;
  const { id, name, subscribed, credit_seconds: creditSeconds } = row;
  const account = { id, name, subscribed: subscribed === 1, creditSeconds, rateLimits: rateLimitsOf(row) };
  return { account, scopes: parseScopes(row.scopes) };
}

/** Rate limits of an account, for calls that name it without a key; undefined for an unknown account. */
export async function findRateLimits(db: D1Database, accountId: string): Promise<RateLimits | undefined> {
  const row = await db
    .prepare('SELECT post_limit, get_limit FROM accounts WHERE id = ?1')
    .bind(accountId)
    .first<RateLimitsRow>();
  return row ? rateLimitsOf(row) : undefined;
}

function rateLimitsOf(row: RateLimitsRow): RateLimits {
  return {
    post: row.post_limit ?? DEFAULT_RATE_LIMITS.post,
    get: row.get_limit ?? DEFAULT_RATE_LIMITS.get,
  };
}

/** Scopes in the form of tokens and of `api_keys`: separated by single spaces. */
export function formatScopes(scopes: readonly Scope[]): string {
  return scopes.join(' ');
}

/** The known scopes in a text of scopes; unknown ones are ignored. */
export function parseScopes(text: string): Scope[] {
  const named = new Set(text.split(' '));
  return SCOPES.filter((scope) => named.has(scope));
}
