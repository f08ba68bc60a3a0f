import { errors, jwtVerify, SignJWT } from 'jose';
import type { StreamTokenKind, StreamTokens } from '../jobs/live-ports.ts';
import { importSigningKey, importSigningKeys, type SigningKeys } from './signing-key.ts';

const ALGORITHM = 'HS256';
const ISSUER = 'rollcall';
const AUDIENCE = 'rollcall:live';
/** What a token is good for; one kind never passes for the other. */
const TYPES: Readonly<Record<StreamTokenKind, string>> = { connect: 'stream+jwt', resume: 'resume+jwt' };

/**
 * Tokens of live streams: a JWT with the stream's id as `sub` and a random `jti`. The signature alone tells a forged one,
 * so that it costs neither a query nor an object; that a token is used once is the matter of the stream's object.
 */
export function createStreamTokens(signingKeys: SigningKeys): StreamTokens {
  return {
    sign: async (kind, streamId, expiresAt) =>
      new SignJWT({})
        .setProtectedHeader({ alg: ALGORITHM, typ: TYPES[kind] })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(streamId)
        .setJti(crypto.randomUUID())
        // Rounded up: the object knows the moment to the millisecond.
        .setExpirationTime(Math.ceil(expiresAt / 1000))
        .sign(await importSigningKey(signingKeys.signingKey)),
    async verify(kind, token, streamId, now) {
      const wanted = {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience: AUDIENCE,
        typ: TYPES[kind],
        subject: streamId,
        requiredClaims: ['sub', 'jti', 'exp'],
        currentDate: new Date(now),
      };
      for (const key of await importSigningKeys(signingKeys)) {
        try {
          await jwtVerify(token, key, wanted);
          return true;
        } catch (error) {
          if (!(error instanceof errors.JOSEError)) throw error;
        }
      }
      return false;
    },
  };
}
