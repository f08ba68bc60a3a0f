const MIN_KEY_BYTES = 32;

/**
 * Imports the service's signing key for HMAC-SHA256.
 * @param signingKey base64 of at least 32 bytes
 * @throws Error when it is not base64 or too short: a deployment that cannot sign must not start to answer
 */
export function importSigningKey(signingKey: string): Promise<CryptoKey> {
  const bytes = signingKeyBytes(signingKey);
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
}

/** What signs, and what signed before and is still accepted; each base64 of at least 32 bytes. */
export interface SigningKeys {
  readonly signingKey: string;
  readonly previousSigningKey?: string;
}

/** The keys that verify, the one that signs first. @throws as `importSigningKey` */
export function importSigningKeys({ signingKey, previousSigningKey }: SigningKeys): Promise<CryptoKey[]> {
  const keys = previousSigningKey === undefined ? [signingKey] : [signingKey, previousSigningKey];
  return Promise.all(keys.map(importSigningKey));
}

/** The same key's bytes. @throws as `importSigningKey` */
export function signingKeyBytes(signingKey: string): Uint8Array<ArrayBuffer> {
  const binary = atob(signingKey);
  if (binary.length < MIN_KEY_BYTES) throw new Error(`the signing key must have at least ${MIN_KEY_BYTES} bytes`);
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}
