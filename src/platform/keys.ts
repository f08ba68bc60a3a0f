import { errors, jwtVerify, SignJWT } from 'jose';
import type { KeyClaims, KeyService } from '../jobs/app-services.ts';
import { findKeyAccount } from './accounts.ts';
import { formatScopes, parseScopes } from './scopes.ts';
import { importSigningKey, importSigningKeys, type SigningKeys } from './signing-key.ts';

/** The only algorithm that is ever signed with or accepted; `none` and every other one fail verification. */
const ALGORITHM = 'HS256';
const ISSUER = 'rollcall';
/** Keeps API keys and upload tickets, which one secret signs, from passing for each other. */
const AUDIENCE = 'rollcall:api';
/** How far the clock of who signs a key may be ahead. */
const CLOCK_SKEW_SECONDS = 60;

/** What an API key says. Times are milliseconds since the Unix epoch; the token keeps whole seconds. */
export interface ApiKeyClaims extends KeyClaims {
  readonly issuedAt: number;
  readonly expiresAt?: number;
}

/**
 * Signs an API key: a JWT with the account as `sub`, the key's id as `jti` and the scopes, separated by spaces, as `scope`.
 * It works once `api_keys` holds its row; the row revokes it.
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
 * @throws Error from `find` when D1 fails: that is not the caller's bad key
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
      // A row whose scopes were narrowed binds keys that were handed out before.
      const scopes = new Set(claims.scopes.filter((scope) => found.scopes.includes(scope)));
      return { account: found.account, keyId: claims.keyId, scopes, origins: claims.origins };
    },
  };
}

async function readClaims(token: string, secret: CryptoKey): Promise<KeyClaims | undefined> {
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
    // What we signed is of the type that we signed.
    return { accountId: sub, keyId: jti, scopes: parseScopes(scope), origins: origins as string[] | undefined };
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

/** Calls `make` once, when it is first needed. */
function lazily<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
