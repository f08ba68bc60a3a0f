import { toHex } from '../audio/bytes.ts';

/** Time after a rotation during which the previous secret also signs. */
export const WEBHOOK_SECRET_GRACE_MS = 24 * 3600 * 1000;

/**
 * Versions of an account's webhook secret that sign at a moment: the current one and, for a day after a rotation, the
 * one before it. Receivers change over within that day without refusing a delivery.
 *
 * @param rotatedAt when the version was last raised, null if never; milliseconds since the Unix epoch, as `now`
 */
export function signingVersions(version: number, rotatedAt: number | null, now: number): number[] {
  return rotatedAt !== null && now < rotatedAt + WEBHOOK_SECRET_GRACE_MS ? [version, version - 1] : [version];
}

/**
 * The signed content of a webhook, `v0:{timestamp}:{raw body}` (contract §8), and the body as a view of it: outputs
 * have megabytes, and one copy in memory is enough.
 *
 * @param timestampSeconds Unix time, also sent as `X-Request-Timestamp`
 * @param parts parts of the body, in order
 */
export function signedContent(
  timestampSeconds: number,
  parts: readonly Uint8Array[],
): { readonly content: Uint8Array<ArrayBuffer>; readonly body: Uint8Array<ArrayBuffer> } {
  const head = new TextEncoder().encode(`v0:${timestampSeconds}:`);
  const content = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, head.length));
  let at = 0;
  for (const part of [head, ...parts]) {
    content.set(part, at);
    at += part.length;
  }
  return { content, body: content.subarray(head.length) };
}

/** Signature of a webhook: hex HMAC-SHA256 over the signed content with the account's secret (contract §8). */
export async function signWebhook(secret: string, content: Uint8Array<ArrayBuffer>): Promise<string> {
  const encoder = new TextEncoder();
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ]);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, content));
  return toHex(mac);
}
