import { z } from '@hono/zod-openapi';
import { streamSSE } from 'hono/streaming';
import { headerRefs } from '../contract/api-document.ts';
import { parseDiarizeBody } from '../contract/diarize.ts';
import { MEDIA_SCHEME } from '../contract/media.ts';
import {
  describeModel,
  diarizedTranscriptionSchema,
  modelIds,
  modelListSchema,
  modelSchema,
  parseTranscriptionForm,
  type TranscriptionEvent,
  type TranscriptionForm,
  transcriptionEventSchema,
  transcriptionFormSchema,
  transcriptionSchema,
  verboseTranscriptionSchema,
} from '../contract/openai.ts';
import type { AppServices, Scope, Transcript } from '../jobs/app-services.ts';
import { canPay, keyCheck } from '../middleware/access.ts';
import type { AppContext } from '../middleware/context.ts';
import { readForm } from '../middleware/form-body.ts';
import type { Refusal } from '../middleware/refusals.ts';
import { answerOpenAiError, INTERNAL_ERROR } from '../middleware/refusals.ts';
import { type Endpoint, endpoint, openAiErrorResponses } from './endpoint.ts';
import { answerOf, byteStream, eventsOf } from './openai-answers.ts';
import {
  identifySpeakers,
  type JobWait,
  MAX_WAIT_MS,
  RequestJobs,
  startVoiceprints,
  TranscriptionFault,
  waitForSuccess,
} from './openai-jobs.ts';

/** Largest body that Cloudflare passes to a Worker. */
const MAX_BYTES = 100 * 1024 * 1024;
/** The request uploads a recording, makes jobs and reads their outputs. */
const SCOPES = ['jobs:write', 'jobs:read', 'media:write'] as const satisfies readonly Scope[];
const EVENT_STREAM = 'text/event-stream';
const JOB_ID_HEADER = 'X-Job-Id';
const RETRY_SECONDS = 5;

const text = { schema: z.string() };

/** POST /v1/audio/transcriptions: OpenAI's transcription of a file, by a diarize job with a transcription. */
export const createTranscription: Endpoint = {
  ...endpoint(
    {
      method: 'post',
      path: '/v1/audio/transcriptions',
      operationId: 'createTranscription',
      summary: 'Transcribe a recording',
      request: { body: { required: true, content: { 'multipart/form-data': { schema: transcriptionFormSchema } } } },
      responses: {
        200: {
          description: 'The transcript',
          headers: headerRefs(JOB_ID_HEADER),
          content: {
            'application/json': {
              schema: z.union([diarizedTranscriptionSchema, verboseTranscriptionSchema, transcriptionSchema]),
            },
            'text/plain': text,
            'application/x-subrip': text,
            'text/vtt': text,
            [EVENT_STREAM]: { schema: transcriptionEventSchema },
          },
        },
        ...withJobId(openAiErrorResponses(400, 401, 402, 403, 413, 415, 503, 504)),
      },
    },
    SCOPES[0],
    async (c) => {
      const { policy } = c.get('services');
      const { account, scopes } = c.get('principal');
      const missing = SCOPES.find((scope) => !scopes.has(scope));
      if (missing) return { kind: 'missing_scope', scope: missing };
      // A request that will be refused is read to report its other faults, but its file is not stored.
      const isPayable = await canPay(c.get('services'), account);
      const upload = new Upload(c, isPayable && c.get('rate')?.exceeded !== true);
      const takeFile = (bytes: ReadableStream<Uint8Array>) => upload.take(bytes);
      const form = await readForm(c, { maxBytes: MAX_BYTES, fileField: 'file', takeFile });
      if (!form.ok) {
        await upload.discard();
        return form.error;
      }
      const parsed = parseTranscriptionForm(form.fields, policy.transcription);
      if (!parsed.ok || !form.hasFile) {
        await upload.discard();
        const missingFile = form.hasFile ? [] : [{ field: 'file', message: 'is required' }];
        return { kind: 'invalid', errors: [...missingFile, ...(parsed.ok ? [] : parsed.errors)] };
      }
      if (!isPayable) return { kind: 'payment_required' };
      return () => transcribe(c, parsed.value, upload.url);
    },
  ),
  errorForm: 'openai',
};

function withJobId(responses: ReturnType<typeof openAiErrorResponses>): ReturnType<typeof openAiErrorResponses> {
  const headers = headerRefs(JOB_ID_HEADER);
  const entries = Object.entries(responses).map(([status, response]) => [status, { headers, ...response }]);
  return Object.fromEntries(entries);
}

/** The file of a request as a recording of the account, under a unique name. */
class Upload {
  readonly #name = `openai/${crypto.randomUUID()}`;
  readonly url = MEDIA_SCHEME + this.#name;
  #isStored = false;

  /** @param isStorable if false, the bytes are read and dropped */
  constructor(
    private readonly c: AppContext,
    private readonly isStorable: boolean,
  ) {}

  async take(bytes: ReadableStream<Uint8Array>): Promise<Refusal | undefined> {
    if (!this.isStorable) {
      await bytes.pipeTo(new WritableStream());
      return undefined;
    }
    const { media } = this.c.get('services');
    const stored = await media.store(this.#accountId, this.#name, bytes);
    if (stored.ok) {
      this.#isStored = true;
      return undefined;
    }
    switch (stored.error.kind) {
      case 'empty':
        return { kind: 'invalid', errors: [{ field: 'file', message: 'is empty' }] };
      case 'too_large':
        return { kind: 'body_too_large', maxBytes: MAX_BYTES };
      case 'too_slow':
        return { kind: 'invalid', errors: [{ field: 'file', message: 'came too slowly' }] };
      case 'no_place':
        return { kind: 'too_many_requests', retryAfterSeconds: RETRY_SECONDS };
    }
  }

  /** Deletes the recording of a refused request. */
  async discard(): Promise<void> {
    if (this.#isStored) await this.c.get('services').media.expire(this.#accountId, this.#name);
  }

  get #accountId(): string {
    return this.c.get('principal').account.id;
  }
}

async function transcribe(c: AppContext, form: TranscriptionForm, url: string): Promise<Response> {
  const run = new TranscriptionRun(c, form, url);
  try {
    await run.start();
    if (form.isStreamed) return streamEvents(c, form, run);
    const { transcript, names } = await run.result({ isConnected: () => true });
    const { contentType, text } = answerOf(transcript, form, names);
    return c.body(byteStream(text), 200, { 'Content-Type': contentType });
  } catch (error) {
    const { status, body } = await run.end(error);
    return answerOpenAiError(c, status, body);
  }
}

function streamEvents(c: AppContext, form: TranscriptionForm, run: TranscriptionRun): Response {
  c.header('X-Accel-Buffering', 'no');
  const answer = streamSSE(c, async (stream) => {
    const onHeartbeat = async () => void (await stream.write(': still here\n\n'));
    const send = (event: TranscriptionEvent) => stream.writeSSE({ data: JSON.stringify(event) });
    try {
      await onHeartbeat();
      const { transcript, names } = await run.result({ isConnected: () => !stream.aborted, onHeartbeat });
      for await (const event of eventsOf(transcript, form, names)) await send(event);
    } catch (error) {
      // The status has been sent: OpenAI's clients look for errors among the events, too.
      const fault = await run.end(error).catch((unexpected) => {
        const fields = { requestId: c.get('requestId'), error: String(unexpected) };
        c.get('services').log('error', 'transcription_stream_failed', fields);
        return new TranscriptionFault(500, INTERNAL_ERROR);
      });
      await send(fault.body);
    }
  });
  // The library sets no-cache.
  c.header('Cache-Control', 'no-store');
  return answer;
}

/** The jobs of one request and their results. */
class TranscriptionRun {
  readonly #services: AppServices;
  readonly #accountId: string;
  readonly #jobs: RequestJobs;
  #jobId = '';
  #voiceprintIds: readonly string[] = [];

  constructor(
    private readonly c: AppContext,
    private readonly form: TranscriptionForm,
    private readonly url: string,
  ) {
    this.#services = c.get('services');
    this.#accountId = c.get('principal').account.id;
    this.#jobs = new RequestJobs(this.#services, this.#accountId);
  }

  /** @throws TranscriptionFault if the credit does not suffice */
  async start(): Promise<void> {
    const { model, language, knownSpeakers } = this.form;
    const body = { url: this.url, transcription: true, transcriptionConfig: { model, language } };
    const parsed = parseDiarizeBody(body, this.#services.policy);
    if (!parsed.ok) throw new Error('the request for a transcription is invalid');
    this.#jobId = await this.#jobs.create({ kind: 'diarize', request: parsed.value });
    this.c.header(JOB_ID_HEADER, this.#jobId);
    this.#voiceprintIds = await startVoiceprints(this.#jobs, knownSpeakers);
    // The references are stored with their jobs, and the request may wait for minutes.
    this.c.get('bodySlot')?.release();
  }

  /**
   * Waits for the jobs.
   *
   * @returns the transcript, and the names of known speakers by label
   * @throws TranscriptionFault if there is no transcript
   */
  async result({
    isConnected,
    onHeartbeat,
  }: {
    readonly isConnected: () => boolean;
    readonly onHeartbeat?: () => Promise<void>;
  }): Promise<{ readonly transcript: Transcript; readonly names: ReadonlyMap<string, string> }> {
    const isKeyGood = keyCheck(this.c, 'jobs:read');
    const waiting: JobWait = {
      jobs: this.#services.jobs,
      accountId: this.#accountId,
      until: Date.now() + MAX_WAIT_MS,
      isOpen: async () => isConnected() && (await isKeyGood()),
      onHeartbeat,
    };
    const [names] = await Promise.all([this.#names(waiting), waitForSuccess(waiting, this.#jobId, 'file')]);
    const transcript = await this.#services.jobs.openTranscript(this.#jobId);
    if (!transcript) throw new TranscriptionFault(400, 'The output of the job was deleted.', { code: 'deleted' });
    if (transcript.ok) return { transcript: transcript.value, names };
    const { warning = 'The recording could not be transcribed.' } = transcript.error;
    const message = `${warning} Who spoke when is in GET /v1/jobs/${this.#jobId}.`;
    throw new TranscriptionFault(503, message, { code: 'transcription_failed' });
  }

  async #names(waiting: JobWait): Promise<ReadonlyMap<string, string>> {
    if (this.#voiceprintIds.length === 0) return new Map();
    const names = this.form.knownSpeakers.map(({ name }) => name);
    const known = { url: this.url, names, voiceprintIds: this.#voiceprintIds };
    return identifySpeakers(this.#services, this.#jobs, waiting, known);
  }

  /**
   * Cancels the unfinished jobs, except after a 504, whose message names the job so that the client can read it later.
   *
   * @throws `error` if it is no TranscriptionFault
   */
  async end(error: unknown): Promise<TranscriptionFault> {
    if (!(error instanceof TranscriptionFault && error.status === 504)) await this.#jobs.cancel();
    if (error instanceof TranscriptionFault) return error;
    throw error;
  }
}

/** GET /v1/models: the models of this service, as OpenAI lists theirs. */
export const listModels: Endpoint = {
  ...endpoint(
    {
      method: 'get',
      path: '/v1/models',
      operationId: 'listModels',
      summary: 'List the models',
      responses: {
        200: { description: 'The models', content: { 'application/json': { schema: modelListSchema } } },
        ...openAiErrorResponses(401),
      },
    },
    'any key',
    (c) => {
      const ids = modelIds(c.get('services').policy.transcription);
      return () => c.json({ object: 'list', data: ids.map(describeModel) });
    },
  ),
  errorForm: 'openai',
};

/** GET /v1/models/{id}: a model. */
export const readModel: Endpoint = {
  ...endpoint(
    {
      method: 'get',
      path: '/v1/models/{id}',
      operationId: 'getModel',
      summary: 'Read a model',
      request: { params: z.object({ id: z.string() }) },
      responses: {
        200: { description: 'The model', content: { 'application/json': { schema: modelSchema } } },
        ...openAiErrorResponses(401, 404),
      },
    },
    'any key',
    (c) => {
      const id = c.req.param('id') ?? '';
      if (!modelIds(c.get('services').policy.transcription).includes(id)) return { kind: 'not_found' };
      return () => c.json(describeModel(id));
    },
  ),
  errorForm: 'openai',
};
