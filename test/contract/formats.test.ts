import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type ContractService, faultyFields, startContractService } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const FORMATS = [
  'json',
  'rttm',
  'srt',
  'vtt',
  'csv',
  'txt',
  'audacity',
  'textgrid',
  'eaf',
  'pyannote',
  'diarized_json',
];
/** File name extensions that differ from the format's name. */
const EXTENSIONS: Record<string, string> = {
  audacity: 'txt',
  textgrid: 'TextGrid',
  pyannote: 'json',
  diarized_json: 'json',
};
const TYPES: Record<string, string> = {
  json: 'application/json',
  rttm: 'text/plain; charset=utf-8',
  srt: 'application/x-subrip; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  audacity: 'text/plain; charset=utf-8',
  textgrid: 'text/plain; charset=utf-8',
  eaf: 'application/xml; charset=utf-8',
  pyannote: 'application/json',
  diarized_json: 'application/json',
};

const path = (id: string, format: string) => `/v1/jobs/${id}/output?format=${format}`;
const download = (id: string, format: string) =>
  fetch(service.url + path(id, format), { headers: { Authorization: `Bearer ${service.main.token}` } });
const textOf = async (id: string, format: string): Promise<string> => (await download(id, format)).text();
const store = (id: string, output: object, extra: object = {}) =>
  storeJob(service, { id, status: 'succeeded', output: JSON.stringify(output), ...extra });

const diarization = [
  { speaker: 'SPEAKER_00', start: 0.5, end: 3.38 },
  { speaker: 'SPEAKER_01', start: 3.1, end: 3726 },
];

describe('GET /v1/jobs/{jobId}/output', () => {
  it('returns the stored output byte for byte as json, also by default', async () => {
    const output = '{"diarization":[],"warning":"\\u00fc"}';
    await storeJob(service, { id: 'bytes', status: 'succeeded', output });
    expect(await textOf('bytes', 'json')).toBe(output);
    const plain = await service.call('GET', '/v1/jobs/bytes/output');
    expect([plain.status, plain.body]).toEqual([200, JSON.parse(output)]);
  });

  it('names the speakers of exclusive turns after the matching voiceprints', async () => {
    await store('named-alone', {
      diarization,
      exclusiveDiarization: [
        { speaker: 'SPEAKER_00', start: 0.5, end: 3.1 },
        { speaker: 'SPEAKER_01', start: 3.1, end: 4 },
      ],
      identification: [{ speaker: 'Ann', start: 0.5, end: 3.38, diarizationSpeaker: 'SPEAKER_00', match: 'Ann' }],
      voiceprints: [
        { speaker: 'SPEAKER_00', match: 'Ann', confidence: { Ann: 90 } },
        { speaker: 'SPEAKER_01', match: null, confidence: { Ann: 2 } },
      ],
    });
    expect(await textOf('named-alone', 'txt')).toBe('0.500  3.100  Ann\n3.100  4.000  SPEAKER_01\n');
  });

  it('writes the turns in every format, as an attachment of its type', async () => {
    await store('turns', { diarization, confidence: { score: [1, 2], resolution: 0.02 } });
    const expected: Record<string, string | RegExp> = {
      rttm:
        'SPEAKER talk 1 0.500 2.880 <NA> <NA> SPEAKER_00 <NA> <NA>\n' +
        'SPEAKER talk 1 3.100 3722.900 <NA> <NA> SPEAKER_01 <NA> <NA>\n',
      srt: '1\n00:00:00,500 --> 00:00:03,380\n[SPEAKER_00]\n\n2\n00:00:03,100 --> 01:02:06,000\n[SPEAKER_01]\n',
      vtt:
        'WEBVTT\n\n00:00:00.500 --> 00:00:03.380\n<v SPEAKER_00>SPEAKER_00</v>\n' +
        '\n00:00:03.100 --> 01:02:06.000\n<v SPEAKER_01>SPEAKER_01</v>\n',
      csv: 'start,end,speaker\n0.500,3.380,SPEAKER_00\n3.100,3726.000,SPEAKER_01\n',
      txt: '0.500  3.380  SPEAKER_00\n3.100  3726.000  SPEAKER_01\n',
      audacity: '0.500\t3.380\tSPEAKER_00\n3.100\t3726.000\tSPEAKER_01\n',
      textgrid: /^File type = "ooTextFile"\n.*xmax = 3726\n.*name = "SPEAKER_01".*xmin = 3\.1\n/s,
      eaf: /^<\?xml .*TIER_ID="SPEAKER_01".*<\/ANNOTATION_DOCUMENT>\n$/s,
      pyannote: /^\{"pyannote":"Annotation","uri":"talk".*"track":"T1","label":"SPEAKER_01"\}\]\}\n$/s,
      diarized_json: /^\{"task":"transcribe","segments":\[.*"speaker":"SPEAKER_01","text":""\}\],"text":"",/s,
    };
    for (const format of FORMATS) {
      const answer = await download('turns', format);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('Content-Type')).toBe(TYPES[format]);
      expect(answer.headers.get('Content-Disposition')).toBe(
        `attachment; filename="turns.${EXTENSIONS[format] ?? format}"`,
      );
      const text = await answer.text();
      const expectedText = expected[format];
      if (expectedText instanceof RegExp) expect(text).toMatch(expectedText);
      else if (format !== 'json') expect(text).toBe(expectedText);
      const head = await service.call('HEAD', path('turns', format));
      expect([head.status, head.body, head.headers.get('Content-Type')]).toEqual([200, undefined, TYPES[format]]);
    }
  });

  it('writes text where there is a transcript, and exclusive turns when requested', async () => {
    const exclusiveDiarization = [{ speaker: 'SPEAKER_00', start: 0.5, end: 3.1 }];
    const turnLevelTranscription = [{ speaker: 'SPEAKER_00', start: 1, end: 2, text: 'Well,\n\n"yes" --> Zoë' }];
    await store('spoken', { diarization, exclusiveDiarization, turnLevelTranscription });
    expect(await textOf('spoken', 'rttm')).toBe('SPEAKER talk 1 0.500 2.600 <NA> <NA> SPEAKER_00 <NA> <NA>\n');
    expect(await textOf('spoken', 'srt')).toBe('1\n00:00:01,000 --> 00:00:02,000\n[SPEAKER_00] Well, "yes" -> Zoë\n');
    expect(await textOf('spoken', 'vtt')).toContain('<v SPEAKER_00>Well, "yes" --&gt; Zoë</v>');
    expect(await textOf('spoken', 'csv')).toBe(
      'start,end,speaker,text\n1.000,2.000,SPEAKER_00,"Well,\n\n""yes"" --> Zoë"\n',
    );
    expect(await textOf('spoken', 'txt')).toBe('1.000  2.000  SPEAKER_00  Well, "yes" --> Zoë\n');
  });

  it('escapes the names of an identification in every format', async () => {
    const name = 'Zoë "Z",\n<Al>';
    const identification = [
      {
        speaker: name,
        start: 0.5,
        end: 3.38,
        diarizationSpeaker: 'SPEAKER_00',
        match: name,
        confidence: { [name]: 87 },
      },
      { speaker: 'SPEAKER_01', start: 3.1, end: 3726, diarizationSpeaker: 'SPEAKER_01', match: null },
    ];
    const voiceprints = [{ speaker: 'SPEAKER_00', match: name, confidence: { [name]: 87 } }];
    await store('named', { diarization, identification, voiceprints }, { kind: 'identify', url: 'media://a/b.c' });
    expect(await textOf('named', 'rttm')).toBe(
      'SPEAKER b 1 0.500 2.880 <NA> <NA> Zoë_"Z",_<Al> <NA> <NA>\n' +
        'SPEAKER b 1 3.100 3722.900 <NA> <NA> SPEAKER_01 <NA> <NA>\n',
    );
    expect(await textOf('named', 'srt')).toContain('\n[Zoë "Z", <Al>]\n');
    expect(await textOf('named', 'vtt')).toContain('<v Zoë "Z", &lt;Al&gt;>');
    expect(await textOf('named', 'csv')).toContain('0.500,3.380,"Zoë ""Z"",\n<Al>"\n');
    expect(await textOf('named', 'txt')).toContain('0.500  3.380  Zoë "Z", <Al>\n');
  });

  it('returns a voiceprint only as json, and 400 for other formats', async () => {
    await store('print', { voiceprint: 'AAAA' }, { kind: 'voiceprint' });
    expect(JSON.parse(await textOf('print', 'json'))).toEqual({ voiceprint: 'AAAA' });
    for (const format of FORMATS.slice(1)) {
      const answer = await service.call('GET', path('print', format));
      expect([answer.status, faultyFields(answer)]).toEqual([400, ['format']]);
    }
  });

  it.each(['text', '', 'RTTM', 'constructor', 'x'.repeat(3000)])(
    'refuses the format %j and lists the known formats',
    async (format) => {
      await store(`known-${format.slice(0, 20)}`, { diarization });
      const answer = await service.call('GET', path(`known-${format.slice(0, 20)}`, format));
      expect([answer.status, faultyFields(answer)]).toEqual([400, ['format']]);
      for (const name of FORMATS) expect(answer.body.errors[0].message).toContain(name);
    },
  );

  it('answers the same 404 for any job without output, before it checks the format', async () => {
    const other = await service.newKey({ account: 'other' });
    const error = { code: 'no_speech', message: 'No speech.' };
    for (const status of ['created', 'pending', 'running']) await storeJob(service, { id: `no-${status}`, status });
    for (const status of ['failed', 'canceled']) await storeJob(service, { id: `no-${status}`, status, error });
    await store('past', { diarization }, { completedAt: Date.now() - 24 * 3600_000 });
    await store('foreign', { diarization }, { accountId: other.accountId });
    await store('vanished', { diarization });
    await service.bucket.delete('outputs/vanished.json');
    const ids = [
      'no-created',
      'no-pending',
      'no-running',
      'no-failed',
      'no-canceled',
      'past',
      'foreign',
      'vanished',
      'nowhere',
    ];
    for (const id of ids) {
      for (const format of ['json', 'rttm', 'nonsense']) {
        const { status, body }: Answer = await service.call('GET', path(id, format));
        expect([id, format, status, Object.keys(body), body.message]).toEqual([
          id,
          format,
          404,
          ['requestId', 'message'],
          'Not found.',
        ]);
      }
    }
    expect((await service.call('GET', path('foreign', 'json'), { key: other.token })).status).toBe(200);
  });

  it('requires jobs:read', async () => {
    const { token } = await service.newKey({ scopes: ['jobs:write', 'media:read'] });
    expect((await service.call('GET', path('turns', 'rttm'), { key: token })).status).toBe(403);
    expect((await service.call('GET', path('turns', 'rttm'), { key: null })).status).toBe(401);
  });
});
