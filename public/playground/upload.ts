import { readError } from '../../client/sdk/request.ts';
import type { Outcome } from '../../client/sdk/types.ts';

/** Sends a file and reports how much of it has gone, 0 to 1, which `fetch` does not tell. */
export function putWithProgress(
  onProgress: (fraction: number) => void,
): (url: string, init: RequestInit) => Promise<Outcome<Response>> {
  return (url, { body, signal }) =>
    new Promise((done) => {
      const request = new XMLHttpRequest();
      const stop = () => request.abort();
      const lost = () => {
        signal?.removeEventListener('abort', stop);
        const message = `${new URL(url).origin} cannot be reached: the upload broke off`;
        done({ ok: false, error: { kind: 'unreachable', message, broken: true } });
      };
      signal?.addEventListener('abort', stop);
      request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0));
      for (const name of ['error', 'abort', 'timeout']) request.addEventListener(name, lost);
      request.addEventListener('load', () => {
        signal?.removeEventListener('abort', stop);
        const headers = new Headers();
        for (const name of ['Retry-After', 'X-Request-Id']) {
          const value = request.getResponseHeader(name);
          if (value !== null) headers.set(name, value);
        }
        const isBodyless = request.status === 204;
        const response = new Response(isBodyless ? null : request.responseText, { status: request.status, headers });
        // `readError` names the address that answered.
        Object.defineProperty(response, 'url', { value: url });
        if (response.ok) done({ ok: true, value: response });
        else void readError(response).then((error) => done({ ok: false, error }));
      });
      request.open('PUT', url);
      request.send(body as XMLHttpRequestBodyInit);
    });
}
