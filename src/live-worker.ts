export { LiveStream } from '../durable-objects/live-stream.ts';

/** The platform wants a handler; all that is called here are the objects. */
export default { fetch: () => new Response(null, { status: 404 }) } satisfies ExportedHandler;
