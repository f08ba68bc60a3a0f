import { errors, jwtVerify, SignJWT } from 'jose';
import type { Result } from '../audio/types.ts';

const ALGORITHM = 'HS256';
const ISSUER = 'rollcall';
const AUDIENCE = 'rollcall:media';
const TYPE = 'upload+jwt';

/** What an upload ticket allows: one account to store one named recording. */
export interface UploadTicket {
  readonly accountId: string;
  readonly name: string;
}

/** @param expiresAt milliseconds since the Unix epoch */
export function signUploadTicket(ticket: UploadTicket, expiresAt: number, secret: CryptoKey): Promise<string> {
  return new SignJWT({ name: ticket.name })
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(ticket.accountId)
    .setExpirationTime(Math.floor(expiresAt / 1000))
    .sign(secret);
}

/** Verifies a ticket; an API key is none, nor is a ticket an API key. */
export async function verifyUploadTicket(
  ticket: string,
  now: number,
  secret: CryptoKey,
): Promise<Result<UploadTicket, { kind: 'bad_ticket' | 'expired_ticket' }>> {
  try {
    const { payload } = await jwtVerify(ticket, secret, {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: TYPE,
      requiredClaims: ['sub', 'exp'],
      currentDate: new Date(now),
    });
    const { sub, name } = payload;
    if (typeof sub !== 'string' || typeof name !== 'string') return { ok: false, error: { kind: 'bad_ticket' } };
    return { ok: true, value: { accountId: sub, name } };
  } catch (error) {
    if (error instanceof errors.JWTExpired) return { ok: false, error: { kind: 'expired_ticket' } };
    if (error instanceof errors.JOSEError) return { ok: false, error: { kind: 'bad_ticket' } };
    throw error;
  }
}
