import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallOptions, type ContractService, faultyFields, startContractService, text } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

/** No server listens on this port: the job fails after the assertions of these tests. */
const SOURCE = 'http://127.0.0.1:9/recording.wav';
const post = (body: CallOptions['body'], options: CallOptions = {}) =>
  service.call('POST', '/v1/diarize', { body, ...options });
const stored = async (jobId: string) => {
  const [row] = await service.run('SELECT request FROM jobs WHERE id = ?', jobId);
  return JSON.parse(String(row.request));
};

describe('a job is created', () => {
  it('with only a url, and the defaults of interface 2.1', async () => {
    const answer = await post({ url: SOURCE });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ jobId: expect.stringMatching(/./), status: 'created' });
    expect(await stored(answer.body.jobId)).toMatchObject({
      url: SOURCE,
      model: 'precision-2',
      webhookStatusOnly: false,
      turnLevelConfidence: false,
      exclusive: false,
      confidence: false,
      transcription: false,
    });
  });

  it('with every field', async () => {
    const body = {
      url: SOURCE,
      webhook: 'https://example.com/done',
      webhookStatusOnly: true,
      model: 'community-1',
      numSpeakers: 3,
      minSpeakers: 2,
      maxSpeakers: 3,
      turnLevelConfidence: true,
      exclusive: true,
      confidence: true,
      speechProbability: true,
      crosstalkProbability: true,
      speakerProbability: true,
      transcription: false,
      transcriptionConfig: { model: 'asr-tdt-0.6b-v3', language: 'de' },
      metadata: { call: '4711', über: 'ok' },
    };
    const answer = await post(body);
    expect(answer.status).toBe(200);
    const { transcriptionConfig: _unused, ...kept } = body;
    expect(await stored(answer.body.jobId)).toEqual(kept);
    const job = await service.call('GET', `/v1/jobs/${answer.body.jobId}`);
    expect(job.body.metadata).toEqual(body.metadata);
  });

  it('with null for every optional field', async () => {
    const nulls = Object.fromEntries(
      [
        'webhook',
        'webhookStatusOnly',
        'model',
        'numSpeakers',
        'minSpeakers',
        'maxSpeakers',
        'turnLevelConfidence',
        'exclusive',
        'confidence',
        'speechProbability',
        'crosstalkProbability',
        'speakerProbability',
        'transcription',
        'transcriptionConfig',
        'metadata',
        'transcription_config',
        'turn_level_confidence',
      ].map((name) => [name, null]),
    );
    const answer = await post({ url: SOURCE, ...nulls });
    expect(answer.status).toBe(200);
    expect(await stored(answer.body.jobId)).toEqual(await stored((await post({ url: SOURCE })).body.jobId));
  });

  it('with unknown fields, which are ignored', async () => {
    const answer = await post({ url: SOURCE, colour: 'red', nested: { a: [1, { b: null }] } });
    expect(answer.status).toBe(200);
    expect(await stored(answer.body.jobId)).not.toHaveProperty('colour');
  });

  it('with the alias turn_level_confidence', async () => {
    const answer = await post({ url: SOURCE, turn_level_confidence: true });
    expect(await stored(answer.body.jobId)).toMatchObject({ turnLevelConfidence: true });
  });

  it('with a speaker count written as a float', async () => {
    const answer = await post(text(`{"url":"${SOURCE}","numSpeakers":2.0,"minSpeakers":1e0}`));
    expect(answer.status).toBe(200);
    expect(await stored(answer.body.jobId)).toMatchObject({ numSpeakers: 2, minSpeakers: 1 });
  });

  it.each([
    'media://a1b2c3',
    'media://team/monday_09-30.wav',
    `data:audio/wav;base64,${Buffer.from('RIFF').toString('base64')}`,
    'https://example.com/a.mp3?sig=1',
  ])('from %s', async (url) => {
    expect((await post({ url })).status).toBe(200);
  });
});

describe('a body is read', () => {
  const body = text(`{"url":"${SOURCE}"}`);

  it('without a Content-Type', async () => {
    expect((await post(body)).status).toBe(200);
  });

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/vnd.api+json',
    'text/plain',
    'application/x-www-form-urlencoded',
  ])('as %s', async (type) => {
    expect((await post(body, { headers: { 'Content-Type': type } })).status).toBe(200);
  });

  it.each(['audio/wav', 'multipart/form-data; boundary=x', 'application/xml', 'nonsense'])(
    'not as %s: 415',
    async (type) => {
      expect((await post(body, { headers: { 'Content-Type': type } })).status).toBe(415);
    },
  );

  it('or refused with a specific message when it is empty or compressed', async () => {
    const errorMessage = async (body: Uint8Array<ArrayBuffer>, headers = {}) => {
      const answer = await service.call('POST', '/v1/diarize', { body, headers });
      expect([answer.status, faultyFields(answer)]).toEqual([400, ['body']]);
      return answer.body.errors[0].message;
    };
    expect(await errorMessage(text(''))).toBe('is empty: send a JSON object');
    const packed = new Uint8Array(gzipSync(JSON.stringify({ url: SOURCE })));
    expect(await errorMessage(packed, { 'Content-Encoding': 'gzip' })).toMatch(/Content-Encoding/);
    expect(await errorMessage(packed)).toBe('is not UTF-8 text');
  });

  it('at an address with trailing slashes', async () => {
    expect((await service.call('POST', '/v1/diarize/', { body: { url: SOURCE } })).status).toBe(200);
    expect((await service.call('POST', '/v1/diarize//', { body: { url: SOURCE } })).status).toBe(200);
  });

  it.each([
    ['empty', ''],
    ['invalid JSON', '{"url":'],
    ['an array', '[]'],
    ['a string', '"https://example.com"'],
    ['null', 'null'],
    ['a form', 'url=https%3A%2F%2Fexample.com'],
    ['deep nesting', `{"x":${'['.repeat(5000)}${']'.repeat(5000)}}`],
    ['a list of 50,000 values', `{"x":[${'{},'.repeat(50_000)}{}]}`],
  ])('and refused when it is %s', async (_name, content) => {
    const answer = await post(text(content));
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe('Invalid request');
    expect(faultyFields(answer)).toEqual(['body']);
  });

  it('and refused when it is not UTF-8', async () => {
    const answer = await post(new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]));
    expect([answer.status, faultyFields(answer)]).toEqual([400, ['body']]);
  });

  it('with a data: URL of up to 8 MiB, and refused with 413 far beyond', async () => {
    const audio = Buffer.alloc(8 * 1024 * 1024).toString('base64');
    expect((await post({ url: `data:audio/wav;base64,${audio}` })).status).toBe(200);
    const large = text(`{"url":"data:audio/wav;base64,${audio}${audio}"}`);
    expect((await post(large)).status).toBe(413);
    expect((await post(new Blob([large]).stream())).status).toBe(413);
  });

  it('one at a time when several large ones arrive together', async () => {
    const body = text(`{"url":"data:audio/wav;base64,${Buffer.alloc(3 * 1024 * 1024).toString('base64')}"}`);
    const sent = [body, body, body, new Blob([body]).stream(), new Blob([body]).stream(), body];
    const answers = await Promise.all(sent.map((each) => post(each)));
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
  });
});

describe('a field is refused', () => {
  const cases: [string, Record<string, unknown>, string[]][] = [
    ['no url', {}, ['url']],
    ['a null url', { url: null }, ['url']],
    ['an empty url', { url: '' }, ['url']],
    ['a url of another type', { url: 5 }, ['url']],
    ['a url without a scheme', { url: 'recording.wav' }, ['url']],
    ['a file url', { url: 'file:///etc/passwd' }, ['url']],
    ['an ftp url', { url: 'ftp://example.com/a.wav' }, ['url']],
    ['a private address', { url: 'http://10.0.0.1/a.wav' }, ['url']],
    ['a url with credentials', { url: 'https://user:secret@example.com/a.wav' }, ['url']],
    ['a media name with ..', { url: 'media://a/../b' }, ['url']],
    ['an empty media name', { url: 'media://' }, ['url']],
    ['a media name of other characters', { url: 'media://a b' }, ['url']],
    ['a media name too long', { url: `media://${'a'.repeat(248)}` }, ['url']],
    ['a url that is too long', { url: `https://example.com/${'a'.repeat(9000)}` }, ['url']],
    ['a data url without data', { url: 'data:audio/wav;base64,' }, ['url']],
    ['a data url that is not base64', { url: 'data:audio/wav;base64,@@@@' }, ['url']],
    ['a data url that ends inside a byte', { url: 'data:audio/wav;base64,AAAAA' }, ['url']],
    ['a data url of only padding', { url: 'data:audio/wav;base64,====' }, ['url']],
    ['a data url of more than 8 MiB', { url: `data:audio/wav;base64,${'A'.repeat(11_400_000)}` }, ['url']],
    ['a webhook of another type', { url: SOURCE, webhook: true }, ['webhook']],
    ['an empty webhook', { url: SOURCE, webhook: '' }, ['webhook']],
    ['a webhook over plain http', { url: SOURCE, webhook: 'http://example.com/done' }, ['webhook']],
    ['a webhook to a private address', { url: SOURCE, webhook: 'https://192.168.1.1/done' }, ['webhook']],
    ['a flag as text', { url: SOURCE, exclusive: 'true' }, ['exclusive']],
    ['a flag as number', { url: SOURCE, confidence: 1 }, ['confidence']],
    ['a probability flag as text', { url: SOURCE, speechProbability: 'yes' }, ['speechProbability']],
    ['an alias of the wrong type', { url: SOURCE, turn_level_confidence: 'yes' }, ['turn_level_confidence']],
    ['a count as text', { url: SOURCE, numSpeakers: '2' }, ['numSpeakers']],
    ['a count of 0', { url: SOURCE, minSpeakers: 0 }, ['minSpeakers']],
    ['a negative count', { url: SOURCE, maxSpeakers: -1 }, ['maxSpeakers']],
    ['a fractional count', { url: SOURCE, numSpeakers: 2.5 }, ['numSpeakers']],
    ['min above max', { url: SOURCE, minSpeakers: 3, maxSpeakers: 2 }, ['minSpeakers', 'maxSpeakers']],
    ['a count below min', { url: SOURCE, numSpeakers: 1, minSpeakers: 2 }, ['numSpeakers']],
    ['a count above max', { url: SOURCE, numSpeakers: 5, maxSpeakers: 4 }, ['numSpeakers']],
    ['an empty model', { url: SOURCE, model: '' }, ['model']],
    ['transcription with community-1', { url: SOURCE, model: 'community-1', transcription: true }, ['transcription']],
    ['a config that is not an object', { url: SOURCE, transcriptionConfig: 'x' }, ['transcriptionConfig']],
    ['an unknown config model', { url: SOURCE, transcriptionConfig: { model: 'x' } }, ['transcriptionConfig.model']],
    [
      'an unknown model in the alias',
      { url: SOURCE, transcription_config: { model: 'constructor' } },
      ['transcription_config.model'],
    ],
    [
      'an unknown language',
      { url: SOURCE, transcriptionConfig: { language: 'Klingon' } },
      ['transcriptionConfig.language'],
    ],
    ['metadata as list', { url: SOURCE, metadata: ['a'] }, ['metadata']],
    ['a number in metadata', { url: SOURCE, metadata: { a: 1 } }, ['metadata.a']],
    ['nested metadata', { url: SOURCE, metadata: { a: { b: 'c' } } }, ['metadata.a']],
    [
      '17 metadata entries',
      { url: SOURCE, metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ''])) },
      ['metadata'],
    ],
    ['a long metadata value', { url: SOURCE, metadata: { a: 'x'.repeat(513) } }, ['metadata.a']],
    ['a long metadata key', { url: SOURCE, metadata: { ['x'.repeat(65)]: '' } }, ['metadata']],
  ];
  it.each(cases)('%s', async (_name, body, fields) => {
    const answer = await post(body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe('Invalid request');
    expect(Object.keys(answer.body).sort()).toEqual(['errors', 'message']);
    expect(faultyFields(answer)).toEqual(fields);
    for (const error of answer.body.errors) expect(error.message).toMatch(/\w/);
  });

  it('an unknown model, with a list of the known models', async () => {
    const answer = await post({ url: SOURCE, model: 'precision-9' });
    expect(answer.body.errors).toEqual([
      { field: 'model', message: expect.stringMatching(/precision-2.*community-1/) },
    ]);
  });

  it('transcription, when no engine is configured', async () => {
    const answer = await post({ url: SOURCE, transcription: true, transcriptionConfig: { language: 'German' } });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toEqual([
      { field: 'transcription', message: expect.stringContaining('not configured') },
    ]);
  });

  it('together with other faulty fields, with one entry for each field', async () => {
    const answer = await post({
      url: 'file:///x',
      webhook: 'http://example.com',
      model: 'none',
      numSpeakers: 0,
      minSpeakers: 9,
      maxSpeakers: 2,
      exclusive: 'no',
      transcription: true,
      transcriptionConfig: { model: 'x', language: 7 },
      metadata: { a: 1, b: 2 },
    });
    expect(answer.status).toBe(400);
    expect(faultyFields(answer).sort()).toEqual([
      'exclusive',
      'maxSpeakers',
      'metadata.a',
      'metadata.b',
      'minSpeakers',
      'model',
      'numSpeakers',
      'transcription',
      'transcriptionConfig.language',
      'transcriptionConfig.model',
      'url',
      'webhook',
    ]);
  });

  it('without creating a job', async () => {
    const count = async () => (await service.run('SELECT COUNT(*) AS n FROM jobs'))[0].n;
    const before = await count();
    await post({ url: SOURCE, model: 'none' });
    expect(await count()).toBe(before);
  });
});
