import { toHex } from '../../audio/bytes.ts';

const TOKEN_BYTES = 32;

/** 256 random bits in hex. */
export function newToken(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)));
}

/** Whether a text may be a token: others are not worth hashing, and not all of them may stand in a header. */
export function isToken(text: string): boolean {
  return text.length === 2 * TOKEN_BYTES && /^[0-9a-f]+$/.test(text);
}

/** What is kept of a token: it proves the token and cannot be turned back into it. */
export async function tokenDigest(token: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)));
}
