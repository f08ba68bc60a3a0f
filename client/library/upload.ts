import { readError, type request } from '../sdk/request.ts';

/** Forwards a stream and reports the number of bytes sent. */
export function countedStream(
  stream: ReadableStream<Uint8Array>,
  onSent: (sentBytes: number) => void,
): ReadableStream<Uint8Array> {
  let sentBytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, control) {
      control.enqueue(chunk);
      sentBytes += chunk.byteLength;
      onSent(sentBytes);
    },
  });
  return stream.pipeThrough(counter);
}

/** Sends a body in a browser and reports the number of bytes sent, which `fetch` does not. */
export function putWithProgress(onSent: (sentBytes: number) => void): typeof request {
  return (url, { body, signal }) =>
    new Promise((done) => {
      const sending = new XMLHttpRequest();
      const stop = (): void => sending.abort();
      const settle = (outcome: Awaited<ReturnType<typeof request>>): void => {
        signal?.removeEventListener('abort', stop);
        done(outcome);
      };
      const fail = (): void => {
        const message = `${new URL(url).origin} cannot be reached: the upload broke off`;
        settle({ ok: false, error: { kind: 'unreachable', message, broken: true } });
      };
      signal?.addEventListener('abort', stop);
      sending.upload.addEventListener('progress', ({ loaded }) => onSent(loaded));
      for (const name of ['error', 'abort', 'timeout']) sending.addEventListener(name, fail);
      sending.addEventListener('load', () => {
        const headers = new Headers();
        for (const name of ['Retry-After', 'X-Request-Id']) {
          const value = sending.getResponseHeader(name);
          if (value !== null) headers.set(name, value);
        }
        const text = sending.status === 204 ? null : sending.responseText;
        const response = new Response(text, { status: sending.status, headers });
        // For the message of `readError`.
        Object.defineProperty(response, 'url', { value: url });
        if (response.ok) settle({ ok: true, value: response });
        else void readError(response).then((error) => settle({ ok: false, error }));
      });
      sending.open('PUT', url);
      sending.send(body as XMLHttpRequestBodyInit);
    });
}
