import { errors, jwtVerify, SignJWT } from 'jose';
import type { Result } from '../audio/audio-ports.ts';

const ALGORITHM = 'HS256';
const ISSUER = 'rollcall';
const AUDIENCE = 'rollcall:media';
/** What a ticket is good for; one kind never passes for the other. */
const TYPES = { upload: 'upload+jwt', download: 'download+jwt' } as const;
export type TicketKind = keyof typeof TYPES;

/** What a ticket allows: to store, or to read, one named recording of one account. */
export interface MediaTicket {
  readonly accountId: string;
  readonly name: string;
}

/** @param expiresAt milliseconds since the Unix epoch */
export function signTicket(
  kind: TicketKind,
  ticket: MediaTicket,
  expiresAt: number,
  secret: CryptoKey,
): Promise<string> {
  return new SignJWT({ name: ticket.name })
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPES[kind] })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(ticket.accountId)
    .setExpirationTime(Math.floor(expiresAt / 1000))
    .sign(secret);
}

type Verified = Result<MediaTicket, { kind: 'bad_ticket' | 'expired_ticket' }>;

/**
 * Verifies a ticket; an API key is none, nor is a ticket an API key.
 *
 * @param secrets any of which may have signed it
 */
export async function verifyTicket(
  kind: TicketKind,
  ticket: string,
  now: number,
  secrets: readonly CryptoKey[],
): Promise<Verified> {
  for (const secret of secrets) {
    const verified = await verifyWith(secret, kind, ticket, now);
    if (verified.ok || verified.error.kind === 'expired_ticket') return verified;
  }
  return { ok: false, error: { kind: 'bad_ticket' } };
}

async function verifyWith(secret: CryptoKey, kind: TicketKind, ticket: string, now: number): Promise<Verified> {
  try {
    const { payload } = await jwtVerify(ticket, secret, {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: TYPES[kind],
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
