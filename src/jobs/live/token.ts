/** What is kept of a token: it proves the token and cannot be turned back into it. */
export async function tokenDigest(token: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)));
}
