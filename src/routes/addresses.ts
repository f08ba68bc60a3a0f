import type { FieldError } from '../contract/errors.ts';
import { MEDIA_NAME_RULE, MEDIA_SCHEME, mediaName } from '../contract/media.ts';
import { checkSourceUrl, checkWebhookUrl } from '../jobs/url-policy.ts';

/**
 * Looks at where a request's addresses point. Fields that are not strings are left to the schema.
 * @returns one entry for each address that is refused
 */
export function addressErrors(body: unknown, policy: { readonly allowLoopback: boolean }): FieldError[] {
  if (typeof body !== 'object' || body === null) return [];
  const { url, webhook } = body as { url?: unknown; webhook?: unknown };
  const errors: FieldError[] = [];
  if (typeof url === 'string' && url !== '') {
    const message = sourceFault(url, policy);
    if (message) errors.push({ field: 'url', message });
  }
  if (typeof webhook === 'string' && webhook !== '') {
    const checked = checkWebhookUrl(webhook, policy);
    if (!checked.ok) errors.push({ field: 'webhook', message: checked.error.message });
  }
  return errors;
}

function sourceFault(url: string, policy: { readonly allowLoopback: boolean }): string | undefined {
  if (url.startsWith(MEDIA_SCHEME)) return mediaName(url) === undefined ? MEDIA_NAME_RULE : undefined;
  const checked = checkSourceUrl(url, policy);
  return checked.ok ? undefined : checked.error.message;
}
