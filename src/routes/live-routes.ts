import { z } from '@hono/zod-openapi';
import {
  type LiveCreated,
  type LiveStreamBody,
  liveBodySchema,
  liveCreatedSchema,
  liveStreamSchema,
  parseLiveBody,
} from '../contract/live.ts';
import type { LiveView } from '../jobs/app-services.ts';
import { canPay } from '../middleware/access.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import type { Refusal } from '../middleware/refusals.ts';
import { endpoint, errorResponses } from './endpoint.ts';

/** POST /v1/live: creates a stream and returns the address to connect to. */
export const createLive = endpoint(
  {
    method: 'post',
    path: '/v1/live',
    operationId: 'createLiveStream',
    summary: 'Open a live stream',
    description: 'The body is optional. An account may have 10 open streams.',
    request: { body: { required: false, content: { 'application/json': { schema: liveBodySchema } } } },
    responses: {
      200: { description: 'The stream', content: { 'application/json': { schema: liveCreatedSchema } } },
      ...errorResponses(400, 401, 402, 403, 413, 415, 503),
      403: { ...errorResponses(403)[403], description: 'The key lacks the scope, or live streams are not enabled' },
    },
  },
  'stream:write',
  async (c) => {
    const services = c.get('services');
    const { live, policy, voiceprintFault } = services;
    if (!policy.liveStreams) return { kind: 'live_not_enabled' };
    const { account, origins } = c.get('principal');
    const body = await readJsonBody(c, {});
    if (!body.ok) return body.error;
    const parsed = parseLiveBody(body.value, voiceprintFault);
    if (!parsed.ok) return { kind: 'invalid', errors: parsed.errors };
    if (!(await canPay(services, account))) return { kind: 'payment_required' };
    return async () => {
      const created = await live.create(account.id, parsed.value, origins);
      if (!created.ok) return created.error;
      const { id, token } = created.value;
      const address = new URL(`/v1/live/${id}/socket?token=${token}`, c.req.url);
      address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
      const answer: LiveCreated = { id, url: address.href };
      return c.json(answer);
    };
  },
);

/** GET /v1/live/{id}: a stream and its state. */
export const readLive = endpoint(
  {
    method: 'get',
    path: '/v1/live/{id}',
    operationId: 'getLiveStream',
    summary: 'Read a live stream',
    request: { params: z.object({ id: z.string() }) },
    responses: {
      200: { description: 'The stream', content: { 'application/json': { schema: liveStreamSchema } } },
      ...errorResponses(401, 403, 404),
    },
  },
  'stream:read',
  async (c) => {
    const stream = await c.get('services').live.find(c.get('principal').account.id, c.req.param('id') ?? '');
    return stream ? () => c.json(describeStream(stream)) : { kind: 'not_found' };
  },
);

/** The WebSocket address of `createLive`. The token in its query is the credential. */
export const connectLive = endpoint(
  {
    method: 'get',
    path: '/v1/live/{id}/socket',
    operationId: 'connectLiveStream',
    summary: 'Stream audio, get speaker turns',
    description:
      'A WebSocket. The client sends binary frames of 100 ms and, at the end, the text ' +
      '`{"type":"end_of_stream"}`. The service sends ' +
      '`{"type":"diarization_speaker_start","data":{"timestamp","speaker"}}`, the same with `_end`, and ' +
      '`{"type":"error","message"}`; if corrections were requested also ' +
      '`{"type":"diarization_speaker_correction","data":{"changes":[{"start","end","from","to"}]}}`. ' +
      'If `resume` was requested, the service sends `{"type":"resume","token","frame"}` at the beginning and every ' +
      '10 s of audio. The last `token`, as `resume` in the query in place of `token`, resumes the stream within 60 s ' +
      'of a drop: the service sends `{"type":"resumed","frame"}`, and the client continues from that frame.',
    request: {
      params: z.object({ id: z.string() }),
      query: z.object({ token: z.string().optional(), resume: z.string().optional() }),
    },
    responses: {
      101: { description: 'Connected' },
      ...errorResponses(400, 401, 403, 426, 503),
      403: { ...errorResponses(403)[403], description: 'The key that made the stream allows other origins only' },
    },
  },
  'public',
  (c) => async () => {
    const { live, policy } = c.get('services');
    const fault = handshakeFault(
      { method: c.req.method, header: (name) => c.req.header(name) },
      policy.directConnections,
    );
    if (fault) return fault;
    const resume = c.req.query('resume');
    const connected = await live.connect(c.req.param('id') ?? '', {
      ...(resume === undefined
        ? { kind: 'connect', token: c.req.query('token') ?? '' }
        : { kind: 'resume', token: resume }),
      origin: c.req.header('Origin'),
    });
    return connected.ok ? new Response(null, { status: 101, webSocket: connected.value }) : connected.error;
  },
);

function describeStream(stream: LiveView): LiveStreamBody {
  const time = (milliseconds: number | undefined) =>
    milliseconds === undefined ? null : new Date(milliseconds).toISOString();
  return {
    id: stream.id,
    status: stream.status,
    startedAt: time(stream.startedAt),
    completedAt: time(stream.completedAt),
    input: stream.input,
  };
}

/** The only version (RFC 6455 §4.1). */
const WEBSOCKET_VERSION = '13';
/** 16 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;

/** The parts of a request that a handshake uses. */
export interface Upgrade {
  readonly method: string;
  header(name: string): string | undefined;
}

/**
 * The fault of a WebSocket handshake (RFC 6455 §4.2); undefined for a valid one. The check must precede the use of the
 * token: the runtime reports a handshake that it cannot complete only after the Worker has accepted it.
 *
 * @param isDirect whether clients connect to the runtime itself, which then needs a complete handshake. The platform's
 *   edge terminates clients' connections and may drop version and key; there only those present are checked.
 */
export function handshakeFault(request: Upgrade, isDirect: boolean): Refusal | undefined {
  // HEAD runs the handlers of GET, and has no connection to upgrade.
  if (request.method !== 'GET' || request.header('Upgrade')?.toLowerCase() !== 'websocket')
    return { kind: 'upgrade_required' };
  const version = request.header('Sec-WebSocket-Version');
  if (version === undefined ? isDirect : version.trim() !== WEBSOCKET_VERSION) return { kind: 'websocket_version' };
  const key = request.header('Sec-WebSocket-Key');
  if (key === undefined ? !isDirect : KEY.test(key.trim())) return undefined;
  return { kind: 'invalid', errors: [{ field: 'Sec-WebSocket-Key', message: 'must be 16 bytes in base64' }] };
}
