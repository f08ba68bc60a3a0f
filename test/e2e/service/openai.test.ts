import { request, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  diarizedTranscriptionSchema,
  openAiErrorSchema,
  type TranscriptionEvent,
  transcriptionEventSchema,
  transcriptionSchema,
  verboseTranscriptionSchema,
} from '../../../src/contract/openai.ts';
import { type ContractService, type NewKey, startContractService, text, UUID } from '../../contract/service.ts';
import { sendJson, startEngine } from '../../helpers/asr-engine.ts';
import { conversationFile, conversationTurns, voiceSample } from '../../helpers/voices.ts';
import { wav16 } from '../../helpers/wav.ts';

const PATH = '/v1/audio/transcriptions';

let engine: Awaited<ReturnType<typeof startEngine>>;
let service: ContractService;
/** A recording in which each of three people speaks once. */
let recording: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  engine = await startEngine();
  service = await startContractService({ ROLLCALL_ASR_URL: engine.url });
  recording = await conversationFile(16);
});
afterAll(async () => {
  await service?.stop();
  await engine?.close();
});

/** Answer of an engine that refuses the audio. */
const refuseAudio = (response: ServerResponse) => sendJson(response, { error: 'no audio' }, 400);

type Fields = readonly (readonly [name: string, value: string | Uint8Array<ArrayBuffer>])[];
const form = (fields: Fields): FormData => {
  const data = new FormData();
  for (const [name, value] of fields)
    data.append(name, typeof value === 'string' ? value : new File([value], 'audio.mp3'));
  return data;
};
const send = (
  body: BodyInit,
  { key = service.main.token, headers = {} }: { key?: string | null; headers?: object } = {},
) =>
  fetch(service.url + PATH, {
    method: 'POST',
    headers: { ...(key !== null && { Authorization: `Bearer ${key}` }), ...headers },
    body,
  });
const post = (fields: Fields, key?: string | null) => send(form(fields), { key });
const transcribe = (...fields: Fields) => post([['file', recording], ['model', 'whisper-1'], ...fields]);

/** Status, parameter and code of an error, which has OpenAI's form. */
async function fault(answer: Response): Promise<[number, string | null, string | null]> {
  const { error } = openAiErrorSchema.strict().parse(await answer.json());
  expect(answer.headers.get('X-Request-Id')).toMatch(UUID);
  expect(error.message).toMatch(/^[A-Z].*\.$/);
  return [answer.status, error.param, error.code];
}

/** The name that the answer gives to most of a person's speech. */
function nameOf(person: string, segments: readonly { start: number; end: number; speaker: string }[]) {
  const seconds: Record<string, number> = {};
  for (const turn of conversationTurns().filter(({ speaker }) => speaker === person))
    for (const { start, end, speaker } of segments)
      seconds[speaker] = (seconds[speaker] ?? 0) + Math.max(0, Math.min(end, turn.end) - Math.max(start, turn.start));
  return Object.entries(seconds).sort(([, a], [, b]) => b - a)[0]?.[0];
}

describe('GET /v1/models', () => {
  it("lists the models in OpenAI's form", async () => {
    const { status, body } = await service.call('GET', '/v1/models');
    expect(status).toBe(200);
    const ids = ['precision-2', 'community-1', 'asr-tdt-0.6b-v3', 'asr-large-v3-turbo', 'whisper-1'];
    expect(body).toEqual({
      object: 'list',
      data: [...ids, 'gpt-4o-transcribe-diarize'].map((id) => {
        return { id, object: 'model', created: 0, owned_by: 'rollcall' };
      }),
    });
    const one = await service.call('GET', '/v1/models/precision-2');
    expect([one.status, one.body]).toEqual([200, body.data[0]]);
  });

  it("answers errors in OpenAI's form", async () => {
    const get = (path: string, init: RequestInit = {}, key = service.main.token) =>
      fetch(service.url + path, { headers: { Authorization: `Bearer ${key}` }, ...init });
    expect(await fault(await get('/v1/models/gpt-5'))).toEqual([404, null, 'not_found']);
    expect(await fault(await get('/v1/models', {}, 'bad'))).toEqual([401, null, 'invalid_api_key']);
    expect(await fault(await get('/v1/models/whisper-1', {}, 'bad'))).toEqual([401, null, 'invalid_api_key']);
    expect(await fault(await get('/v1/models', { headers: {} }))).toEqual([401, null, 'invalid_api_key']);
    expect(await fault(await get('/v1/models', { method: 'DELETE' }, 'bad'))).toEqual([401, null, 'invalid_api_key']);
    const key = { Authorization: `Bearer ${service.main.token}` };
    expect(await fault(await get('/v1/models/', { method: 'POST', headers: key }))).toEqual([
      405,
      null,
      'method_not_allowed',
    ]);
    expect((await service.call('GET', '/v1/nothing')).body).toHaveProperty('requestId');
  });
});

describe('POST /v1/audio/transcriptions', () => {
  it('returns the text as JSON and the id of its job', async () => {
    const answer = await transcribe();
    expect(answer.status).toBe(200);
    expect(answer.headers.get('Content-Type')).toBe('application/json');
    const body = transcriptionSchema.strict().parse(await answer.json());
    expect(body.text).toMatch(/^w\d+\.?( w\d+\.?){20,}$/);
    const { body: job } = await service.call('GET', `/v1/jobs/${answer.headers.get('X-Job-Id')}`);
    expect(job.status).toBe('succeeded');
    const transcript = job.output.turnLevelTranscription.map((turn: { text: string }) => turn.text).join(' ');
    expect(body.text).toBe(transcript);
    const seconds = Math.max(...job.output.diarization.map(({ end }: { end: number }) => end));
    expect(body.usage).toEqual({ type: 'duration', seconds: expect.any(Number) });
    expect(body.usage.seconds).toBeGreaterThanOrEqual(Math.floor(seconds));
    expect(body.usage.seconds).toBeLessThan(seconds + 5);
  });

  it('stores the file as a recording of the account under a new name', async () => {
    const rows = await service.run("SELECT account_id, size_bytes FROM media WHERE name LIKE 'openai/%'");
    expect(rows[0]).toEqual({ account_id: service.main.accountId, size_bytes: recording.length });
  });

  it('returns plain text, SubRip and WebVTT', async () => {
    const [plain, srt, vtt] = await Promise.all(
      ['text', 'srt', 'vtt'].map(async (format) => {
        const answer = await transcribe(['response_format', format]);
        return [answer.headers.get('Content-Type'), await answer.text()] as const;
      }),
    );
    expect(plain[0]).toBe('text/plain; charset=utf-8');
    expect(plain[1]).toMatch(/^w\d+\.?( w\d+\.?)+\n$/);
    expect(srt[0]).toBe('application/x-subrip; charset=utf-8');
    expect(srt[1]).toMatch(/^1\n00:00:\d\d,\d{3} --> 00:00:\d\d,\d{3}\nw\d+.*\n\n2\n/);
    expect(vtt[0]).toBe('text/vtt; charset=utf-8');
    expect(vtt[1]).toMatch(/^WEBVTT\n\n00:00:\d\d\.\d{3} --> 00:00:\d\d\.\d{3}\nw\d+.*\n\n00:/);
    for (const [, subtitles] of [srt, vtt]) {
      const words = subtitles.match(/w\d+\.?/g);
      expect(words?.join(' ')).toBe(plain[1].trim());
    }
  });

  it('returns the requested words and segments with times', async () => {
    const verbose = async (...fields: Fields) => {
      const answer = await transcribe(['response_format', 'verbose_json'], ...fields);
      return verboseTranscriptionSchema.strict().parse(await answer.json());
    };
    const bySegment = await verbose();
    expect(Object.keys(bySegment)).toEqual(['task', 'language', 'duration', 'text', 'segments', 'usage']);
    expect(bySegment.language).toBe('unknown');
    expect(bySegment.segments?.map(({ id }) => id)).toEqual(bySegment.segments?.map((_, index) => index));
    expect(bySegment.segments?.every(({ start, end }) => start < end && end <= bySegment.duration + 0.001)).toBe(true);
    expect(bySegment.segments?.map((segment) => segment.text).join(' ')).toBe(bySegment.text);

    const byWord = await verbose(['timestamp_granularities[]', 'word'], ['language', 'German']);
    expect(byWord).not.toHaveProperty('segments');
    expect(byWord.language).toBe('de');
    expect(byWord.words?.map(({ word }) => word).join(' ')).toBe(byWord.text);
    expect(engine.heard.at(-1)?.fields).toMatchObject({ language: ['de'] });

    const both = await verbose(['timestamp_granularities[]', 'word'], ['timestamp_granularities[]', 'segment']);
    expect([both.words?.length, both.segments?.length]).toEqual([byWord.words?.length, bySegment.segments?.length]);
  });

  it('returns segments with letters as names of speakers', async () => {
    const answer = await transcribe(['response_format', 'diarized_json']);
    const body = diarizedTranscriptionSchema.strict().parse(await answer.json());
    expect(body.segments.map((segment) => segment.text).join(' ')).toBe(body.text);
    expect(body.segments.map(({ id }) => id).slice(0, 2)).toEqual(['seg_001', 'seg_002']);
    const speakers = [...new Set(body.segments.map(({ speaker }) => speaker))];
    expect(speakers).toEqual(['A', 'B', 'C'].slice(0, speakers.length));
    const people = ['adam', 'beth'].map((person) => nameOf(person, body.segments));
    expect(new Set(people).size).toBe(2);
  });

  it('accepts fields before and after the file, and ignored fields', async () => {
    const answer = await post([
      ['temperature', '0.2'],
      ['prompt', 'ignored'],
      ['include[]', 'logprobs'],
      ['chunking_strategy', 'auto'],
      ['model', 'gpt-4o-transcribe-diarize'],
      ['file', recording],
      ['response_format', 'text'],
      ['stream', 'false'],
      ['language', ''],
    ]);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toMatch(/^w\d/);
  });

  // Five jobs, one after the other.
  it("calls the engine's model for each model name", { timeout: 60_000 }, async () => {
    const engineModel = async (...fields: Fields) => {
      const answer = await post([['file', recording], ...fields]);
      expect(answer.status).toBe(200);
      await answer.text();
      return engine.heard.at(-1)?.fields.model[0];
    };
    expect(await engineModel(['model', 'whisper-1'])).toBe('faster-whisper-large-v3-turbo');
    expect(await engineModel(['model', 'gpt-4o-transcribe-diarize'])).toBe('parakeet-tdt-0.6b-v3');
    expect(await engineModel(['model', 'gpt-4o-transcribe-diarize'], ['language', 'ja'])).toBe(
      'faster-whisper-large-v3-turbo',
    );
    expect(await engineModel(['model', 'parakeet-tdt-0.6b-v3'])).toBe('parakeet-tdt-0.6b-v3');
    expect(await engineModel(['model', 'asr-large-v3-turbo'])).toBe('faster-whisper-large-v3-turbo');
  });

  it('names known speakers by their references, and bills these jobs', async () => {
    const { token } = await service.newKey({ account: 'known' });
    const reference = async (person: string) =>
      `data:audio/wav;base64,${Buffer.from(await voiceSample(person, 8)).toString('base64')}`;
    const answer = await post(
      [
        ['model', 'gpt-4o-transcribe-diarize'],
        ['known_speaker_names[]', 'Adam'],
        ['known_speaker_references[]', await reference('adam')],
        ['file', recording],
        ['known_speaker_names[]', 'Beth ☺'],
        ['known_speaker_references[]', await reference('beth')],
        ['response_format', 'diarized_json'],
      ],
      token,
    );
    const body = diarizedTranscriptionSchema.parse(await answer.json());
    expect(['adam', 'beth', 'carl'].map((person) => nameOf(person, body.segments))).toEqual(['Adam', 'Beth ☺', 'A']);
    const { body: usage } = await service.call('GET', '/v1/usage', { key: token });
    const kinds = usage.days.map(({ kind, jobs }: { kind: string; jobs: number }) => `${jobs} ${kind}`);
    expect(kinds).toEqual(expect.arrayContaining(['1 diarize', '1 identify', '2 voiceprint']));
  });

  it('refuses a reference without speech, and ends the job', async () => {
    const silence = `data:audio/wav;base64,${Buffer.from(wav16(new Float32Array(48_000), 16_000)).toString('base64')}`;
    const answer = await transcribe(['known_speaker_names[]', 'Nobody'], ['known_speaker_references[]', silence]);
    expect(await fault(answer)).toEqual([400, 'known_speaker_references.0', expect.stringMatching(/speech/)]);
    const { body } = await service.call('GET', `/v1/jobs/${answer.headers.get('X-Job-Id')}`);
    expect(['canceled', 'succeeded']).toContain(body.status);
  });
});

describe('a stream', () => {
  const events = async (...fields: Fields): Promise<TranscriptionEvent[]> => {
    const answer = await transcribe(['stream', 'true'], ...fields);
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([200, 'text/event-stream']);
    expect(answer.headers.get('X-Job-Id')).toMatch(UUID);
    const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('data: '));
    return lines.map((line) => transcriptionEventSchema.parse(JSON.parse(line.slice(6))));
  };
  const typesOf = (list: readonly TranscriptionEvent[]) =>
    list.map((event) => ('type' in event ? event.type : 'error'));

  it('has deltas of the text, then the complete text', async () => {
    const list = await events();
    const deltas = list.flatMap((event) => ('delta' in event ? event.delta : []));
    expect(deltas.length).toBeGreaterThan(1);
    expect(list.at(-1)).toEqual({ type: 'transcript.text.done', text: deltas.join('') });
    expect(new Set(typesOf(list.slice(0, -1)))).toEqual(new Set(['transcript.text.delta']));
  });

  it('has segments with speakers', async () => {
    const list = await events(['response_format', 'diarized_json']);
    const segments = list.flatMap((event) => ('speaker' in event ? event : []));
    expect(segments.length).toBeGreaterThan(1);
    expect(list.at(-1)).toEqual({
      type: 'transcript.text.done',
      text: segments.map((segment) => segment.text).join(' '),
    });
    expect(list.flatMap((event) => ('delta' in event ? event.segment_id : []))).toEqual(segments.map(({ id }) => id));
  });

  it('ends with an error when the job fails', async () => {
    const answer = await post([
      ['file', text('no audio')],
      ['model', 'whisper-1'],
      ['stream', 'true'],
    ]);
    const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('data: '));
    expect(lines.length).toBe(1);
    expect(openAiErrorSchema.parse(JSON.parse(lines[0].slice(6))).error).toMatchObject({ param: 'file' });
  });
});

describe('a request is refused', () => {
  const model = ['model', 'whisper-1'] as const;

  it('for all faulty fields in one message', async () => {
    const answer = await post([
      ['model', 'gpt-5'],
      ['response_format', 'xml'],
      ['stream', 'maybe'],
      ['language', 'xx'],
    ]);
    const { error } = openAiErrorSchema.parse(await answer.clone().json());
    for (const name of ['file', 'model', 'response_format', 'stream', 'language'])
      expect(error.message).toContain(name);
    expect(await fault(answer)).toEqual([400, 'file', null]);
  });

  const cases: [name: string, param: string, fields: Fields][] = [
    ['no model', 'model', []],
    ['a diarization model', 'model', [['model', 'precision-2']]],
    ['an unknown format', 'response_format', [model, ['response_format', 'JSON']]],
    ['a stream of subtitles', 'stream', [model, ['stream', 'true'], ['response_format', 'srt']]],
    ['an unknown language', 'language', [model, ['language', 'Klingon']]],
    [
      'a language of another model',
      'language',
      [
        ['model', 'asr-tdt-0.6b-v3'],
        ['language', 'ja'],
      ],
    ],
    ['an unknown granularity', 'timestamp_granularities', [model, ['timestamp_granularities[]', 'letter']]],
    ['names without references', 'known_speaker_references', [model, ['known_speaker_names[]', 'Adam']]],
    [
      'an address as a reference',
      'known_speaker_references.0',
      [model, ['known_speaker_names[]', 'Adam'], ['known_speaker_references[]', 'https://example.com/adam.wav']],
    ],
    [
      'a reserved label as a name',
      'known_speaker_names',
      [model, ['known_speaker_names[]', 'SPEAKER_00'], ['known_speaker_references[]', 'data:;base64,AAAA']],
    ],
  ];
  it.each(cases)('for %s', async (_, param, fields) => {
    expect(await fault(await post([['file', recording], ...fields]))).toEqual([400, param, null]);
  });

  it('without storing its file', async () => {
    await post([['file', recording]]);
    const before = await service.run("SELECT 1 FROM media WHERE name LIKE 'openai/%' AND expires_at > ?", Date.now());
    await post([['file', recording]]);
    const after = await service.run("SELECT 1 FROM media WHERE name LIKE 'openai/%' AND expires_at > ?", Date.now());
    expect(after.length).toBe(before.length);
  });

  it('for a file that is empty, without audio, or repeated', async () => {
    expect(await fault(await post([['file', text('')], model]))).toEqual([400, 'file', null]);
    const broken = await post([['file', text('no audio')], model]);
    expect(await fault(broken)).toEqual([400, 'file', expect.stringMatching(/^\w+$/)]);
    expect(broken.headers.get('X-Job-Id')).toMatch(UUID);
    expect(await fault(await post([['file', recording], ['file', recording], model]))).toEqual([400, 'file', null]);
  });

  it('for a body that is not a form', async () => {
    expect(await fault(await send('{}', { headers: { 'Content-Type': 'application/json' } }))).toEqual([
      415,
      null,
      'unsupported_media_type',
    ]);
    const bytes = (await new Response(form([['file', recording], model])).arrayBuffer()).slice(0, 5000);
    const type = 'multipart/form-data; boundary=x';
    expect(await fault(await send(bytes, { headers: { 'Content-Type': type } }))).toEqual([400, 'body', null]);
    expect(await fault(await send('', { headers: { 'Content-Type': 'multipart/form-data' } }))).toEqual([
      400,
      'body',
      null,
    ]);
  });

  it('for more than 100 MiB, with or without a declared length', async () => {
    const status = await new Promise((done, fail) => {
      const { hostname, port } = new URL(service.url);
      const headers = {
        Authorization: `Bearer ${service.main.token}`,
        'Content-Type': 'multipart/form-data; boundary=x',
        'Content-Length': 100 * 1024 * 1024 + 1,
      };
      const sent = request({ hostname, port, path: PATH, method: 'POST', headers }, (response) => {
        done(response.statusCode);
        sent.destroy();
      });
      sent.on('error', fail);
      sent.write('--x\r\n');
    });
    expect(status).toBe(413);

    const megabyte = new Uint8Array(1024 * 1024);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent === 0)
          controller.enqueue(text('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'));
        if (sent++ < 101) controller.enqueue(megabyte);
        else controller.close();
      },
    });
    const answer = await fetch(service.url + PATH, {
      method: 'POST',
      headers: { Authorization: `Bearer ${service.main.token}`, 'Content-Type': 'multipart/form-data; boundary=x' },
      body,
      duplex: 'half',
    } as RequestInit);
    expect(await fault(answer)).toEqual([413, null, 'request_too_large']);
  });

  it('after reading a file too large to be held twice in memory', async () => {
    const large = new Uint8Array(90 * 1024 * 1024);
    large.set(recording);
    const answer = await post([
      ['file', large],
      ['model', 'nothing'],
    ]);
    expect(await fault(answer)).toEqual([400, 'model', null]);
  });

  it("with 401, 403, 402, 405 and 429 in OpenAI's form", async () => {
    const fields: Fields = [['file', recording], model];
    expect(await fault(await post(fields, null))).toEqual([401, null, 'invalid_api_key']);
    expect(await fault(await post(fields, 'bad'))).toEqual([401, null, 'invalid_api_key']);
    const keyOf = async (options: NewKey) => (await service.newKey(options)).token;
    for (const scopes of [['jobs:read'], ['jobs:read', 'jobs:write'], ['jobs:write', 'media:write']] as const) {
      const key = await keyOf({ account: 'limited', scopes });
      expect(await fault(await post(fields, key))).toEqual([403, null, 'insufficient_permissions']);
    }
    const unfunded = await keyOf({ account: 'poor', creditSeconds: 5 });
    expect(await fault(await post(fields, unfunded))).toEqual([402, null, 'insufficient_quota']);
    expect(await fault(await post([['file', recording]], unfunded))).toEqual([400, 'model', null]);
    const get = await fetch(service.url + PATH, { headers: { Authorization: `Bearer ${service.main.token}` } });
    expect(await fault(get)).toEqual([405, null, 'method_not_allowed']);

    const busy = await keyOf({ account: 'busy', defaultLimits: true });
    const bare: Fields = [['model', 'whisper-1']];
    await Promise.all(Array.from({ length: 100 }, () => post(bare, busy)));
    expect(await fault(await post(bare, busy))).toEqual([400, 'file', null]);
    const limited = await post(fields, busy);
    expect(limited.headers.get('Retry-After')).toMatch(/^\d+$/);
    expect(await fault(limited)).toEqual([429, null, 'rate_limit_exceeded']);
    const stored = await service.run(
      "SELECT 1 FROM media JOIN accounts ON accounts.id = account_id WHERE accounts.name IN ('busy', 'poor')",
    );
    expect(stored).toEqual([]);
  });

  it('with 503 when the engine fails, while the job keeps its diarization', async () => {
    engine.behaviours.push(...Array(20).fill(refuseAudio));
    try {
      const answer = await transcribe();
      expect(answer.headers.get('X-Should-Retry')).toBe('false');
      const { body } = await service.call('GET', `/v1/jobs/${answer.headers.get('X-Job-Id')}`);
      expect(body.output.diarization.length).toBeGreaterThan(2);
      expect(await fault(answer)).toEqual([503, null, 'transcription_failed']);
    } finally {
      engine.behaviours.length = 0;
    }
  });
});

describe('without an engine', () => {
  let bare: ContractService;
  beforeAll(async () => {
    bare = await startContractService({ ROLLCALL_ASR_URL: '' });
  });
  afterAll(() => bare?.stop());

  it('lists no transcription models and refuses files', async () => {
    const { body } = await bare.call('GET', '/v1/models');
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual(['precision-2', 'community-1']);
    const answer = await fetch(bare.url + PATH, {
      method: 'POST',
      headers: { Authorization: `Bearer ${bare.main.token}` },
      body: form([
        ['file', recording],
        ['model', 'whisper-1'],
      ]),
    });
    expect(await fault(answer)).toEqual([400, 'model', null]);
  });
});

describe('with an engine of one model', () => {
  let single: ContractService;
  beforeAll(async () => {
    const variables = { ROLLCALL_ASR_URL: '', ROLLCALL_ASR_URL_ASR_TDT_0_6B_V3: engine.url };
    single = await startContractService(variables);
  });
  afterAll(() => single?.stop());

  it('uses its model for the model names of OpenAI', async () => {
    const transcribeWith = (model: string) =>
      fetch(single.url + PATH, {
        method: 'POST',
        headers: { Authorization: `Bearer ${single.main.token}` },
        body: form([
          ['file', recording],
          ['model', model],
        ]),
      });
    const answer = await transcribeWith('whisper-1');
    expect(answer.status).toBe(200);
    expect(engine.heard.at(-1)?.fields.model[0]).toBe('parakeet-tdt-0.6b-v3');
    expect(await fault(await transcribeWith('asr-large-v3-turbo'))).toEqual([400, 'model', null]);
  });
});
