import { base64url, errors, jwtVerify, SignJWT } from 'jose';
import type { Result } from '../audio/audio-ports.ts';
import { toHex } from '../audio/bytes.ts';
import type { JobStatus } from '../jobs/app-services.ts';
import type { ListPosition } from '../jobs/job-store.ts';
import type { StreamTokenKind, StreamTokens } from '../jobs/live-ports.ts';

const MIN_KEY_BYTES = 32;

/**
 * Imports the service's signing key for HMAC-SHA256.
 * @param signingKey base64 of at least 32 bytes
 * @throws Error if it is not base64 or is too short: a deployment that cannot sign must not accept requests
 */
export function importSigningKey(signingKey: string): Promise<CryptoKey> {
  const bytes = signingKeyBytes(signingKey);
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
}

/** The key that signs, and the previous one, which is still accepted; each base64 of at least 32 bytes. */
export interface SigningKeys {
  readonly signingKey: string;
  readonly previousSigningKey?: string;
}

/** The keys that verify, the current one first. @throws as `importSigningKey` */
export function importSigningKeys({ signingKey, previousSigningKey }: SigningKeys): Promise<CryptoKey[]> {
  const keys = previousSigningKey === undefined ? [signingKey] : [signingKey, previousSigningKey];
  return Promise.all(keys.map(importSigningKey));
}

/** The bytes of a signing key. @throws as `importSigningKey` */
export function signingKeyBytes(signingKey: string): Uint8Array<ArrayBuffer> {
  const binary = atob(signingKey);
  if (binary.length < MIN_KEY_BYTES) throw new Error(`the signing key must have at least ${MIN_KEY_BYTES} bytes`);
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

const ALGORITHM = 'HS256';
const ISSUER = 'rollcall';
const STREAM_AUDIENCE = 'rollcall:live';
/** The `typ` of each kind, so that a token of one kind is not accepted as the other. */
const STREAM_TYPES: Readonly<Record<StreamTokenKind, string>> = { connect: 'stream+jwt', resume: 'resume+jwt' };

/**
 * Tokens of live streams: a JWT with the stream's id as `sub` and a random `jti`. The signature alone reveals a forged
 * token, which costs neither a query nor a call of an object. The stream's object ensures that a token is used once.
 */
export function createStreamTokens(signingKeys: SigningKeys): StreamTokens {
  return {
    sign: async (kind, streamId, expiresAt) =>
      new SignJWT({})
        .setProtectedHeader({ alg: ALGORITHM, typ: STREAM_TYPES[kind] })
        .setIssuer(ISSUER)
        .setAudience(STREAM_AUDIENCE)
        .setSubject(streamId)
        .setJti(crypto.randomUUID())
        // Rounded up: the object checks the expiry to the millisecond.
        .setExpirationTime(Math.ceil(expiresAt / 1000))
        .sign(await importSigningKey(signingKeys.signingKey)),
    async verify(kind, token, streamId, now) {
      const requirements = {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience: STREAM_AUDIENCE,
        typ: STREAM_TYPES[kind],
        subject: streamId,
        requiredClaims: ['sub', 'jti', 'exp'],
        currentDate: new Date(now),
      };
      for (const key of await importSigningKeys(signingKeys)) {
        try {
          await jwtVerify(token, key, requirements);
          return true;
        } catch (error) {
          if (!(error instanceof errors.JOSEError)) throw error;
        }
      }
      return false;
    },
  };
}

const TICKET_AUDIENCE = 'rollcall:media';
/** The `typ` of each kind, so that a ticket of one kind is not accepted as the other. */
const TICKET_TYPES = { upload: 'upload+jwt', download: 'download+jwt' } as const;
export type TicketKind = keyof typeof TICKET_TYPES;

/** Claims of a ticket, which permits storing or reading one named recording of one account. */
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
    .setProtectedHeader({ alg: ALGORITHM, typ: TICKET_TYPES[kind] })
    .setIssuer(ISSUER)
    .setAudience(TICKET_AUDIENCE)
    .setSubject(ticket.accountId)
    .setExpirationTime(Math.floor(expiresAt / 1000))
    .sign(secret);
}

type Verified = Result<MediaTicket, { kind: 'bad_ticket' | 'expired_ticket' }>;

/**
 * Verifies a ticket. API keys are not accepted as tickets, nor tickets as API keys.
 *
 * @param secrets keys, one of which must have signed the ticket
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
      audience: TICKET_AUDIENCE,
      typ: TICKET_TYPES[kind],
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

/** The list of a cursor, which is invalid for another account or another filter. */
export interface ListScope {
  readonly accountId: string;
  readonly status?: JobStatus;
}

/**
 * A position in a list as an opaque text for clients. Signed, so that it can be neither forged nor used for another
 * list.
 *
 * @param signingKey base64 of at least 32 bytes
 */
export async function signCursor(signingKey: string, scope: ListScope, position: ListPosition): Promise<string> {
  const key = await importSigningKey(signingKey);
  const positionText = `${position.createdAt}.${position.id}`;
  const mac = await crypto.subtle.sign('HMAC', key, message(scope, positionText));
  return `${base64url.encode(positionText)}.${base64url.encode(new Uint8Array(mac))}`;
}

/** @returns undefined for a text that is no cursor of this list */
export async function readCursor(
  signingKeys: SigningKeys,
  scope: ListScope,
  cursor: string,
): Promise<ListPosition | undefined> {
  const [positionBytes, mac] = cursor.split('.').map(decoded);
  if (!positionBytes || !mac) return undefined;
  const text = new TextDecoder().decode(positionBytes);
  const keys = await importSigningKeys(signingKeys);
  const isSigned = await Promise.all(keys.map((key) => crypto.subtle.verify('HMAC', key, mac, message(scope, text))));
  if (!isSigned.includes(true)) return undefined;
  // Decoding is lenient: it would ignore characters that were added to the cursor.
  if (cursor !== `${base64url.encode(positionBytes)}.${base64url.encode(mac)}`) return undefined;
  const dot = text.indexOf('.');
  return { createdAt: Number(text.slice(0, dot)), id: text.slice(dot + 1) };
}

function message(
  { accountId, status = '' }: { accountId: string; status?: string },
  positionText: string,
): Uint8Array<ArrayBuffer> {
  const text = `rollcall list cursor\n${accountId}\n${status}\n${positionText}`;
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

function decoded(part: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return new Uint8Array(base64url.decode(part));
  } catch {
    return undefined;
  }
}

/**
 * Secret that signs an account's webhooks: HMAC-SHA256 of account and version with the service's signing key. Derived
 * at each use and never stored, so that a copy of the database reveals no secret. A higher version is a new secret.
 *
 * @param signingKey base64 of at least 32 bytes
 * @returns `whsec_` and 64 hex digits
 */
export async function deriveWebhookSecret(signingKey: string, accountId: string, version: number): Promise<string> {
  const raw = Uint8Array.from(atob(signingKey), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const message = new TextEncoder().encode(`rollcall webhook secret\n${version}\n${accountId}`);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, message));
  return `whsec_${toHex(mac)}`;
}
