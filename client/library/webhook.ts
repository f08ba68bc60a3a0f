export interface WebhookOptions {
  /** Largest difference between the webhook's time and `now`; 300 by default. */
  readonly toleranceSeconds?: number;
  /** Milliseconds since the Unix epoch; the current time by default. */
  readonly now?: number;
}

/** Headers of `fetch`, of Node's http, or a plain object. */
export type WebhookHeaders =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Checks that a webhook is recent and signed with the account's secret, or with the previous one during a rotation.
 *
 * @param body as it was received, before any parser
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  { toleranceSeconds = 300, now = Date.now() }: WebhookOptions = {},
): Promise<boolean> {
  const timestamp = headerOf(headers, 'x-request-timestamp');
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceSeconds) return false;
  const encoder = new TextEncoder();
  const bytes = typeof body === 'string' ? encoder.encode(body) : body;
  const head = encoder.encode(`v0:${timestamp}:`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['verify']);
  for (const name of ['x-signature', 'x-signature-previous']) {
    const signature = bytesOfHex(headerOf(headers, name) ?? '');
    // `verify` compares in constant time.
    if (signature && (await crypto.subtle.verify('HMAC', key, signature, signed))) return true;
  }
  return false;
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') {
    return (headers as { get(name: string): string | null }).get(name) ?? undefined;
  }
  const entry = Object.entries(headers).find(([candidate]) => candidate.toLowerCase() === name)?.[1];
  return typeof entry === 'string' ? entry : undefined;
}

function bytesOfHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[0-9a-f]{64}$/i.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}
