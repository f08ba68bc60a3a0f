import { toHex } from '../audio/bytes.ts';

/**
 * Secret that signs an account's webhooks: HMAC-SHA256 of account and version with the service's signing key. Derived whenever
 * it is needed and stored nowhere, so a copy of the database reveals none; a higher version is a new secret.
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
