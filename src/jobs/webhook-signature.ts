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
