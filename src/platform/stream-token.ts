import { errors, jwtVerify, SignJWT } from 'jose';
import type { StreamTokenKind, StreamTokens } from '../jobs/live/ports.ts';
import { importSigningKey } from './signing-key.ts';

const ALGORITHM = 'HS256';
const ISSUER = 'rollcall';
const AUDIENCE = 'rollcall:live';
/** What a token is good for; one kind never passes for the other. */
const TYPES: Readonly<Record<StreamTokenKind, string>> = { connect: 'stream+jwt', resume: 'resume+jwt' };

/**
 * Tokens of live streams: a JWT with the stream's id as `sub` and a random `jti`. The signature alone tells a forged one,
 * so that it costs neither a query nor an object; that a token is used once is the matter of the stream's object.
 *
 * @param signingKey base64 of at least 32 bytes
 */
export function createStreamTokens(signingKey: string): StreamTokens {
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
        .sign(await importSigningKey(signingKey)),
    async verify(kind, token, streamId, now) {
      try {
        await jwtVerify(token, await importSigningKey(signingKey), {
          algorithms: [ALGORITHM],
          issuer: ISSUER,
          audience: AUDIENCE,
          typ: TYPES[kind],
          subject: streamId,
          requiredClaims: ['sub', 'jti', 'exp'],
          currentDate: new Date(now),
        });
        return true;
      } catch (error) {
        if (error instanceof errors.JOSEError) return false;
        throw error;
      }
    },
  };
}
