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

/** The same key's bytes. @throws as `importSigningKey` */
export function signingKeyBytes(signingKey: string): Uint8Array<ArrayBuffer> {
  const binary = atob(signingKey);
  if (binary.length < MIN_KEY_BYTES) throw new Error(`the signing key must have at least ${MIN_KEY_BYTES} bytes`);
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}
