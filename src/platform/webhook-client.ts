import type { RetryReason } from '../jobs/job-messages.ts';
import type { WebhookPort } from '../jobs/job-ports.ts';
import { checkWebhookUrl, redirectPolicy, type UrlPolicy } from '../jobs/url-policy.ts';

const TIMEOUT_MS = 10_000;
const MAX_REDIRECTS = 2;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Posts webhooks. Checks each hop against the address policy; never reads the body of the answer. */
export function createWebhookClient(options: { allowLoopback: boolean; timeoutMs?: number }): WebhookPort {
  return {
    async post(url, body, headers) {
      const signal = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
      let target = url;
      let policy: UrlPolicy = options;
      for (let hop = 0; ; hop++) {
        const checked = checkWebhookUrl(target, policy);
        if (!checked.ok) return failure('connection_failed', checked.error.message);
        let response: Response;
        try {
          // A redirect keeps the method and the body, which the receiver needs.
          response = await fetch(checked.value, { method: 'POST', body, headers, redirect: 'manual', signal });
        } catch (error) {
          return failure(reasonOf(error, signal), error instanceof Error ? error.message : String(error));
        }
        // The receiver has answered, so that a broken connection no longer matters.
        await response.body?.cancel().catch(() => undefined);
        const location = response.headers.get('Location');
        if (!REDIRECTS.has(response.status) || location === null)
          return { ok: true, value: { status: response.status } };
        if (hop === MAX_REDIRECTS) return failure('too_many_redirects', `more than ${MAX_REDIRECTS} redirects`);
        if (!URL.canParse(location, checked.value.href))
          return failure('http_error', 'a redirect to an invalid address');
        target = new URL(location, checked.value).href;
        policy = redirectPolicy(policy, checked.value);
      }
    },
  };
}

function failure(reason: RetryReason, detail: string) {
  return { ok: false, error: { reason, detail } } as const;
}

/** The platform reports few causes; all others are `unknown_error`. */
function reasonOf(error: unknown, signal: AbortSignal): RetryReason {
  if (signal.aborted) return 'http_timeout';
  const text = error instanceof Error ? error.message.toLowerCase() : '';
  if (/ssl|tls|certificate/.test(text)) return 'ssl_error';
  if (/connect|refused|network|reset|dns|resolve|disconnected/.test(text)) return 'connection_failed';
  return 'unknown_error';
}
