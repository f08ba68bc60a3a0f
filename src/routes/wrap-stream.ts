/**
 * The bytes of `body` between two texts, passed on chunk by chunk. A failure of `body` breaks the stream off, so that a
 * reader never takes half a document for a whole one.
 */
export function wrapStream(
  before: string,
  body: ReadableStream<Uint8Array>,
  after: string,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(before));
    },
    async pull(controller) {
      const next = await reader.read();
      if (!next.done) return controller.enqueue(next.value);
      controller.enqueue(encoder.encode(after));
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
