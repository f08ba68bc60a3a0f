export { LiveStream } from '../durable-objects/live-stream.ts';

/** The platform requires a handler, but only the objects of this Worker are called. */
export default { fetch: () => new Response(null, { status: 404 }) } satisfies ExportedHandler;
