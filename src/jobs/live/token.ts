import { toHex } from '../../audio/bytes.ts';

const TOKEN_BYTES = 32;
/** Longer texts are no tokens and not worth hashing. */
export const TOKEN_CHARS = 2 * TOKEN_BYTES;

/** 256 random bits in hex. */
export function newToken(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)));
}

/** What is kept of a token: it proves the token and cannot be turned back into it. */
export async function tokenDigest(token: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)));
}
