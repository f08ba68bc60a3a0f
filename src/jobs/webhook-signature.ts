/** How long the secret from before a rotation still signs beside the new one. */
export const WEBHOOK_SECRET_GRACE_MS = 24 * 3600 * 1000;

/**
 * Versions of an account's webhook secret that sign at a moment: the current one and, for a day after a rotation, the one
 * before it. Receivers change over within that day without refusing a delivery.
 *
 * @param rotatedAt when the version was last raised, null if never; milliseconds since the Unix epoch, as `now`
 */
export function signingVersions(version: number, rotatedAt: number | null, now: number): number[] {
  return rotatedAt !== null && now < rotatedAt + WEBHOOK_SECRET_GRACE_MS ? [version, version - 1] : [version];
}

/**
 * Signature of a webhook: hex HMAC-SHA256 over `v0:{timestamp}:{raw body}` with the account's secret (contract §8).
 *
 * @param timestampSeconds Unix time, also sent as `X-Request-Timestamp`
 */
export async function signWebhook(secret: string, timestampSeconds: number, body: Uint8Array): Promise<string> {
  const encoder = new TextEncoder();
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ]);
  const head = encoder.encode(`v0:${timestampSeconds}:`);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, signed));
  return Array.from(mac, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
