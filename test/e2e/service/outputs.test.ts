import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diarizeOutputSchema, type Turn } from '../../../src/contract/outputs.ts';
import { type Answer, type ContractService, startContractService } from '../../contract/service.ts';
import { conversationFile } from '../../helpers/voices.ts';

const ALL_OUTPUTS = {
  exclusive: true,
  confidence: true,
  turnLevelConfidence: true,
  speechProbability: true,
  crosstalkProbability: true,
  speakerProbability: true,
};

let service: ContractService;
let full: Answer['body'];
beforeAll(async () => {
  service = await startContractService();
  const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://conversation' } });
  await service.call('PUT', body.url, { key: null, body: await conversationFile(30) });
  full = await run({ url: 'media://conversation', ...ALL_OUTPUTS, metadata: { call: '4711' } });
}, 180_000);
afterAll(() => service?.stop());

/** Starts a job and polls it until it ends. */
async function run(request: object): Promise<Answer['body']> {
  const { status, body } = await service.call('POST', '/v1/diarize', { body: request });
  expect(status).toBe(200);
  for (;;) {
    const job = (await service.call('GET', `/v1/jobs/${body.jobId}`)).body;
    if (['succeeded', 'failed', 'canceled'].includes(job.status)) return job;
    expect(['created', 'pending', 'running']).toContain(job.status);
    expect(job).not.toHaveProperty('output');
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

const isWholeMilliseconds = (seconds: number) => Math.abs(seconds * 1000 - Math.round(seconds * 1000)) < 1e-6;

describe('the output of a diarize job', () => {
  it('matches the schema of the contract, in a job result with metadata', () => {
    expect(full).toMatchObject({ status: 'succeeded', metadata: { call: '4711' } });
    expect(Date.parse(full.updatedAt)).toBeGreaterThanOrEqual(Date.parse(full.createdAt));
    expect(full.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    const { output } = full;
    expect(diarizeOutputSchema.strict().safeParse(output).error).toBeUndefined();
    expect(output.diarization.length).toBeGreaterThan(2);
  });

  it('has turns sorted by start, then speaker, in whole milliseconds', () => {
    const turns: Turn[] = full.output.diarization;
    for (const { start, end } of turns) {
      expect(start).toBeGreaterThanOrEqual(0);
      expect(end).toBeGreaterThan(start);
      expect([isWholeMilliseconds(start), isWholeMilliseconds(end)]).toEqual([true, true]);
    }
    const sorted = [...turns].sort((a, b) => a.start - b.start || (a.speaker < b.speaker ? -1 : 1));
    expect(turns).toEqual(sorted);
  });

  it('numbers speakers without gaps in order of first appearance', () => {
    const speakers = [...new Set((full.output.diarization as Turn[]).map(({ speaker }) => speaker))];
    expect(speakers).toEqual(speakers.map((_, index) => `SPEAKER_${String(index).padStart(2, '0')}`));
  });

  it('has no overlap in exclusiveDiarization, and no other speakers', () => {
    const turns: Turn[] = full.output.exclusiveDiarization;
    expect(turns.length).toBeGreaterThan(2);
    for (let i = 1; i < turns.length; i++) expect(turns[i].start).toBeGreaterThanOrEqual(turns[i - 1].end);
    const speakers = new Set((full.output.diarization as Turn[]).map(({ speaker }) => speaker));
    for (const { speaker } of turns) expect(speakers).toContain(speaker);
  });

  it('has confidences of 0 to 100 and probabilities of 0 to 1 for each frame', () => {
    const { output } = full;
    const speakers = new Set((output.diarization as Turn[]).map(({ speaker }) => speaker));
    const within = (values: number[], max: number) => {
      expect(values.length).toBeGreaterThan(0);
      expect(values.every((value) => value >= 0 && value <= max)).toBe(true);
    };
    for (const { speaker, confidence } of output.diarization) {
      expect(confidence).toHaveProperty(speaker);
      within(Object.values(confidence), 100);
    }
    within(output.confidence.score, 100);
    within(output.speechProbability.score, 1);
    within(output.crosstalkProbability.score, 1);
    expect(new Set(Object.keys(output.speakerProbability.score))).toEqual(speakers);
    for (const score of Object.values(output.speakerProbability.score)) within(score as number[], 1);
    const frames = output.confidence.score.length;
    const lists = [output.speechProbability, output.crosstalkProbability];
    for (const list of lists) expect(list.score).toHaveLength(frames);
    for (const list of [output.confidence, ...lists, output.speakerProbability]) expect(list.resolution).toBe(0.02);
  });

  it('has the tracks of the remaining speakers when speakers were merged', async () => {
    const request = { url: 'media://conversation', model: 'community-1', numSpeakers: 2, ...ALL_OUTPUTS };
    const { status, output } = await run(request);
    expect(status).toBe('succeeded');
    expect(Object.keys(output.speakerProbability.score)).toEqual(['SPEAKER_00', 'SPEAKER_01']);
    const frames = output.confidence.score.length;
    for (const score of Object.values(output.speakerProbability.score)) expect(score).toHaveLength(frames);
  });

  it('contains only turns and their count by default, equal in repeated jobs', async () => {
    const [first, second] = [await run({ url: 'media://conversation' }), await run({ url: 'media://conversation' })];
    expect(Object.keys(first.output)).toEqual(['diarization', 'speakerCount']);
    expect(first.output.speakerCount).toMatchObject({ estimate: 3, confidence: expect.any(Number) });
    expect(JSON.stringify(second.output)).toBe(JSON.stringify(first.output));
    const turns = (full.output.diarization as Turn[]).map(({ speaker, start, end }) => ({ speaker, start, end }));
    expect(first.output.diarization).toEqual(turns);
  }, 180_000);

  it.each([1, 2, 3])(
    'has %i speakers when requested, without a warning',
    async (numSpeakers) => {
      const { output } = await run({ url: 'media://conversation', numSpeakers });
      expect(new Set((output.diarization as Turn[]).map(({ speaker }) => speaker)).size).toBe(numSpeakers);
      expect([output.warning, output.speakerCount]).toEqual([undefined, undefined]);
    },
    180_000,
  );
});

describe('a job that fails', () => {
  it.each([
    ['a missing upload', 'media://nothing-here'],
    ['a data: URL without audio', `data:audio/wav;base64,${Buffer.from('<html></html>').toString('base64')}`],
    ['an address without a server', 'http://127.0.0.1:9/recording.wav'],
  ])(
    'has an error and a code for %s',
    async (_name, url) => {
      const job = await run({ url });
      expect(job.status).toBe('failed');
      expect(job.output).toEqual({ error: expect.stringMatching(/\w.*\.$/), code: expect.stringMatching(/^[a-z_]+$/) });
    },
    60_000,
  );
});
