import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js';
import { MCP_ARGUMENTS, mcpMessageSchema } from '../contract/mcp.ts';
import type { JobView } from '../jobs/app-services.ts';
import { isTerminal } from '../jobs/job-record.ts';
import type { AppContext } from '../middleware/context.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { type Endpoint, endpoint, errorResponses } from './endpoint.ts';
import { describeJob } from './job-routes.ts';

/** Answers a request like one from a client. */
export type Fetch = (request: Request, env: object, context: ExecutionContext) => Response | Promise<Response>;

/** Longest output of a tool, for the limited context of a language model. */
const MAX_OUTPUT_CHARS = 256 * 1024;
const MORE = '\n[The output is longer. Read all of it at GET /v1/jobs/{jobId}/output.]';

/**
 * POST /mcp: the Model Context Protocol over streamable HTTP, without sessions. Tools that create or list jobs call the
 * service's own routes with the caller's key, so that scopes, limits, credit and errors are the same.
 */
export function mcp(fetch: Fetch, version: string): Endpoint {
  return endpoint(
    {
      method: 'post',
      path: '/mcp',
      operationId: 'mcp',
      summary: 'Model Context Protocol',
      request: { body: { required: true, content: { 'application/json': { schema: mcpMessageSchema } } } },
      responses: {
        200: {
          description: 'The response of the protocol',
          content: { 'application/json': { schema: mcpMessageSchema } },
        },
        202: { description: 'The notification was accepted' },
        ...errorResponses(400, 401, 413, 415),
        406: { description: 'The client does not accept both `application/json` and `text/event-stream`' },
      },
    },
    'any key',
    async (c) => {
      const body = await readJsonBody(c);
      if (!body.ok) return body.error;
      return async () => {
        const server = serverOf(c, fetch, version);
        const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
        await server.connect(transport);
        return transport.handleRequest(c.req.raw, { parsedBody: body.value });
      };
    },
  );
}

/** This server sends clients no requests. The SDK's validator would compile code, which a Worker must not do. */
const UNUSED_VALIDATOR: jsonSchemaValidator = {
  getValidator() {
    throw new Error('this server sends its clients no requests');
  },
};

function serverOf(c: AppContext, fetch: Fetch, version: string): McpServer {
  const server = new McpServer({ name: 'rollcall', version }, { jsonSchemaValidator: UNUSED_VALIDATOR });

  const call = async (method: 'GET' | 'POST', path: string, body?: object): Promise<Response> => {
    const headers = { Authorization: c.req.header('Authorization') ?? '', 'Content-Type': 'application/json' };
    const request = new Request(new URL(path, c.req.url), { method, headers, body: body && JSON.stringify(body) });
    return fetch(request, c.env, c.executionCtx as ExecutionContext);
  };
  const answer = async (pending: Promise<Response>): Promise<CallToolResult> => {
    const response = await pending;
    return resultOf(await boundedText(response), response.ok);
  };

  const { diarize, transcribe, identify, voiceprint, recount, get_job, list_jobs } = MCP_ARGUMENTS;
  const started = 'Returns the id of a job; read the job with get_job.';
  server.registerTool(
    'diarize',
    { description: `Finds out who speaks when in a recording. ${started}`, inputSchema: diarize },
    (input) => answer(call('POST', '/v1/diarize', input)),
  );
  server.registerTool(
    'transcribe',
    { description: `Transcribes a recording, with the speaker of each turn. ${started}`, inputSchema: transcribe },
    ({ language, ...input }) =>
      answer(call('POST', '/v1/diarize', { ...input, transcription: true, transcriptionConfig: { language } })),
  );
  server.registerTool(
    'identify',
    {
      description: `Finds out who speaks when, and which speakers match the given voiceprints. ${started}`,
      inputSchema: identify,
    },
    ({ threshold, ...input }) => answer(call('POST', '/v1/identify', { ...input, matching: { threshold } })),
  );
  server.registerTool(
    'voiceprint',
    { description: `Makes a voiceprint of one person's voice, for identify. ${started}`, inputSchema: voiceprint },
    (input) => answer(call('POST', '/v1/voiceprint', input)),
  );
  server.registerTool(
    'recount',
    {
      description: `Repeats a diarization of the last 24 hours with another number of speakers. ${started}`,
      inputSchema: recount,
    },
    ({ jobId, ...input }) => answer(call('POST', `/v1/jobs/${encodeURIComponent(jobId)}/recount`, input)),
  );
  server.registerTool(
    'list_jobs',
    { description: 'Lists the jobs of the account, newest first.', inputSchema: list_jobs },
    (input) => {
      const parameters = Object.entries(input).filter(([, value]) => value !== undefined);
      return answer(
        call('GET', `/v2/jobs?${new URLSearchParams(parameters.map(([name, value]) => [name, String(value)]))}`),
      );
    },
  );
  server.registerTool(
    'get_job',
    { description: 'Reads a job: its status, and its output once it has succeeded.', inputSchema: get_job },
    async ({ jobId, format, waitSeconds = 0 }) => {
      if (!c.get('principal').scopes.has('jobs:read')) return resultOf('The API key lacks the scope jobs:read.', false);
      const job = await endOrTimeout(c, jobId, waitSeconds);
      if (!job) return resultOf('Not found.', false);
      const result = resultOf(JSON.stringify(describeJob(job)));
      if (job.status !== 'succeeded') return result;
      const wanted = format ?? (job.kind === 'voiceprint' ? 'json' : 'txt');
      const output = await answer(call('GET', `/v1/jobs/${job.id}/output?format=${wanted}`));
      return { ...output, content: [...result.content, ...output.content] };
    },
  );
  return server;
}

/** The job when it has ended or the wait is over; undefined if the account has no job with this id. */
async function endOrTimeout(c: AppContext, jobId: string, waitSeconds: number): Promise<JobView | undefined> {
  const { jobs } = c.get('services');
  const accountId = c.get('principal').account.id;
  const until = Date.now() + waitSeconds * 1000;
  let job = await jobs.find(accountId, jobId);
  if (!job || isTerminal(job.status) || waitSeconds === 0) return job;
  for await (const item of jobs.watch(accountId, jobId, -1, () => Date.now() < until))
    if (item.kind === 'status') job = item.job;
  return job;
}

const resultOf = (text: string, isGood = true): CallToolResult => ({
  content: [{ type: 'text', text }],
  ...(!isGood && { isError: true }),
});

async function boundedText({ body }: Response): Promise<string> {
  if (!body) return '';
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    text += decoder.decode(next.value, { stream: true });
    if (text.length < MAX_OUTPUT_CHARS) continue;
    await reader.cancel();
    return text.slice(0, MAX_OUTPUT_CHARS) + MORE;
  }
  return text;
}
