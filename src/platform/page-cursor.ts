import { base64url } from 'jose';
import type { JobStatus } from '../jobs/app-services.ts';
import type { ListPosition } from '../jobs/job-ports.ts';
import { importSigningKey, importSigningKeys, type SigningKeys } from './signing-key.ts';

/** Which list a cursor belongs to; one of another account or another filter is none of this list. */
export interface ListScope {
  readonly accountId: string;
  readonly status?: JobStatus;
}

/**
 * A place in a list as text for its owner: opaque, and signed, so that nobody makes one up or uses it elsewhere.
 *
 * @param signingKey base64 of at least 32 bytes
 */
export async function signCursor(signingKey: string, scope: ListScope, position: ListPosition): Promise<string> {
  const key = await importSigningKey(signingKey);
  const place = `${position.createdAt}.${position.id}`;
  const mac = await crypto.subtle.sign('HMAC', key, message(scope, place));
  return `${base64url.encode(place)}.${base64url.encode(new Uint8Array(mac))}`;
}

/** @returns undefined for a text that is no cursor of this list */
export async function readCursor(
  signingKeys: SigningKeys,
  scope: ListScope,
  cursor: string,
): Promise<ListPosition | undefined> {
  const [place, mac] = cursor.split('.').map(decoded);
  if (!place || !mac) return undefined;
  const text = new TextDecoder().decode(place);
  const keys = await importSigningKeys(signingKeys);
  const isSigned = await Promise.all(keys.map((key) => crypto.subtle.verify('HMAC', key, mac, message(scope, text))));
  if (!isSigned.includes(true)) return undefined;
  // Decoding is lenient: what was added to a cursor would be lost on it.
  if (cursor !== `${base64url.encode(place)}.${base64url.encode(mac)}`) return undefined;
  const dot = text.indexOf('.');
  return { createdAt: Number(text.slice(0, dot)), id: text.slice(dot + 1) };
}

function message(
  { accountId, status = '' }: { accountId: string; status?: string },
  place: string,
): Uint8Array<ArrayBuffer> {
  const text = `rollcall list cursor\n${accountId}\n${status}\n${place}`;
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

function decoded(part: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return new Uint8Array(base64url.decode(part));
  } catch {
    return undefined;
  }
}
