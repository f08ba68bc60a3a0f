import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type ContractService, startContractService } from '../../contract/service.ts';
import { sendJson, startEngine } from '../../helpers/asr-engine.ts';
import { conversationFile, conversationTurns } from '../../helpers/voices.ts';

/** Contract §2, §3, §7: `transcription`, on the real service with a simulated engine. */
let engine: Awaited<ReturnType<typeof startEngine>>;
let service: ContractService;
let url: string;
beforeAll(async () => {
  engine = await startEngine();
  service = await startContractService({ ROLLCALL_ASR_URL_ASR_LARGE_V3_TURBO: engine.url });
  const recording = Buffer.from(await conversationFile(30));
  url = `data:audio/wav;base64,${recording.toString('base64')}`;
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await engine?.close();
});
beforeEach(() => {
  engine.behaviours.length = 0;
  engine.heard.length = 0;
});

const MODEL = { model: 'faster-whisper-large-v3-turbo', language: 'English' };
interface Text {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly speaker: string;
}

async function runJob(body: object) {
  const created = await service.call('POST', '/v1/diarize', { body: { url, ...body } });
  expect(created.status).toBe(200);
  const { jobId } = created.body;
  const read = async () => (await service.call('GET', `/v1/jobs/${jobId}`)).body;
  await expect.poll(async () => (await read()).status, { timeout: 60_000, interval: 200 }).toMatch(/succeeded|failed/);
  return { jobId, ...(await read()) };
}
const format = async (jobId: string, name: string): Promise<string> => {
  const headers = { Authorization: `Bearer ${service.main.token}` };
  return (await fetch(`${service.url}/v1/jobs/${jobId}/output?format=${name}`, { headers })).text();
};

it('a transcription adds words and turns with speakers to the output, in every format', {
  timeout: 120_000,
}, async () => {
  const plain = await runJob({ exclusive: true });
  const { jobId, status, output } = await runJob({
    exclusive: true,
    transcription: true,
    transcription_config: MODEL,
  });
  expect(status).toBe('succeeded');
  const { wordLevelTranscription, turnLevelTranscription, ...rest } = output;
  expect(rest).toEqual(plain.output);
  const words = wordLevelTranscription as Text[];
  const turns = turnLevelTranscription as Text[];
  expect(words.length).toBeGreaterThan(20);
  words.forEach(({ start, end, speaker, text }, index) => {
    expect(Object.keys(words[index])).toEqual(['start', 'end', 'text', 'speaker']);
    expect([end > start, start >= (words[index - 1]?.start ?? 0), text.trim()]).toEqual([true, true, text]);
    expect(speaker).toMatch(/^SPEAKER_\d\d$/);
  });
  expect(turns.map(({ text }) => text).join(' ')).toBe(words.map(({ text }) => text).join(' '));
  expect(engine.heard[0].fields).toMatchObject({ model: ['faster-whisper-large-v3-turbo'], language: ['en'] });
  expect((await format(jobId, 'txt')).split('\n')[0]).toMatch(/^\d+\.\d{3} {2}\d+\.\d{3} {2}SPEAKER_00 {2}\S+/);
  expect(await format(jobId, 'vtt')).toContain(`<v ${turns[0].speaker}>${turns[0].text}</v>`);
  expect(await format(jobId, 'srt')).toContain(`[${turns[0].speaker}] ${turns[0].text}`);
  expect(await format(jobId, 'csv')).toMatch(/^start,end,speaker,text\n/);
  expect(await format(jobId, 'rttm')).toBe(
    await format(plain.jobId, 'rttm').then((text) => text.replaceAll(plain.jobId, jobId)),
  );
  // The two people do not overlap: each word inside a reference turn belongs to its speaker.
  const reference = conversationTurns();
  const inTurns = words.flatMap(({ start, end, speaker }) => {
    const middle = (start + end) / 2;
    const turn = reference.find((turn) => turn.start <= middle && middle <= turn.end);
    return turn ? [(turn.speaker === reference[0].speaker) === (speaker === words[0].speaker)] : [];
  });
  expect(inTurns.filter(Boolean).length / inTurns.length).toBeGreaterThan(0.97);
});

it('a transcription has its own row in the usage and counts once in the totals', async () => {
  const { body } = await service.call('GET', '/v1/usage');
  const ofKind = (kind: string) => body.days.find((row: { kind: string }) => row.kind === kind);
  expect(ofKind('transcription')).toMatchObject({ jobs: 1 });
  expect(ofKind('diarize')).toMatchObject({ jobs: 2 });
  expect(ofKind('transcription').billedSeconds).toBeCloseTo(ofKind('diarize').billedSeconds / 2, 2);
  expect(body.totals).toMatchObject({ jobs: 2, billedSeconds: ofKind('diarize').billedSeconds });
});

it('a transcription whose model has no engine is refused with 400', async () => {
  const answer = await service.call('POST', '/v1/diarize', { body: { url, transcription: true } });
  expect([answer.status, answer.body.errors]).toEqual([
    400,
    [
      {
        field: 'transcriptionConfig.model',
        message: 'asr-tdt-0.6b-v3 is not configured on this service; it has asr-large-v3-turbo',
      },
    ],
  ]);
});

it('a transcription that the engine refuses leaves a job with diarization and a warning', {
  timeout: 60_000,
}, async () => {
  engine.behaviours.push(
    ...Array.from({ length: 20 }, () => (response: Parameters<typeof sendJson>[0]) => {
      sendJson(response, { error: { message: 'key sk-secret is wrong' } }, 401);
    }),
  );
  const { status, output } = await runJob({ transcription: true, transcriptionConfig: MODEL });
  expect(status).toBe('succeeded');
  expect(output.diarization.length).toBeGreaterThan(1);
  expect(output).not.toHaveProperty('wordLevelTranscription');
  expect(output.warning).toBe('The recording could not be transcribed: the transcription engine rejects the request.');
});
