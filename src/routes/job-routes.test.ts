import { expect, it } from 'vitest';
import { wrapStream } from './job-routes.ts';

const bytes = (content: string) => new TextEncoder().encode(content);
const stream = (source: UnderlyingDefaultSource<Uint8Array>) => new ReadableStream<Uint8Array>(source);

it('adds a text before and after the bytes of a stream', async () => {
  const chunks = ['{"a"', '', ':1}'];
  const body = stream({
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(bytes(chunk));
    },
  });
  expect(await new Response(wrapStream('{"output":', body, '}')).text()).toBe('{"output":{"a":1}}');
});

it('fails when the stream fails, without closing the incomplete document', async () => {
  let pulls = 0;
  const body = stream({
    pull(controller) {
      if (pulls++ === 0) controller.enqueue(bytes('{"a"'));
      else controller.error(new Error('storage went away'));
    },
  });
  await expect(new Response(wrapStream('{', body, '}')).text()).rejects.toThrow('storage went away');
});

it('cancels the stream when its reader cancels', async () => {
  let canceled = false;
  const body = stream({
    pull: (controller) => controller.enqueue(bytes('x')),
    cancel() {
      canceled = true;
    },
  });
  const reader = wrapStream('{', body, '}').getReader();
  await reader.read();
  await reader.cancel();
  expect(canceled).toBe(true);
});
