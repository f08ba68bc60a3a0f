import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  diarizeOutputSchema,
  type IdentifyOutput,
  identifyOutputSchema,
  voiceprintOutputSchema,
} from '../../../src/contract/outputs.ts';
import { encodeVoiceprint } from '../../../src/voiceprint/voiceprint.ts';
import { type Answer, type ContractService, faultyFields, startContractService } from '../../contract/service.ts';
import { conversationFile, conversationTurns, voiceSample } from '../../helpers/voices.ts';
import { wav16 } from '../../helpers/wav.ts';

const PEOPLE = ['adam', 'beth', 'carl'];
/** Length of the conversation: each person speaks twice. */
const SECONDS = 30;

let service: ContractService;
const prints: Record<string, string> = {};

beforeAll(async () => {
  service = await startContractService();
  await upload('conversation', await conversationFile(SECONDS));
  for (const name of PEOPLE) {
    await upload(name, await voiceSample(name));
    const job = await run('/v1/voiceprint', { url: `media://${name}` });
    expect(job).toMatchObject({ status: 'succeeded' });
    prints[name] = job.output.voiceprint;
  }
}, 180_000);
afterAll(() => service?.stop());

async function upload(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const { body } = await service.call('POST', '/v1/media/input', { body: { url: `media://${name}` } });
  expect((await service.call('PUT', body.url, { key: null, body: bytes })).status).toBe(200);
}

async function run(path: string, request: object, key?: string): Promise<Answer['body']> {
  const { status, body } = await service.call('POST', path, { body: request, key });
  expect(body).toEqual({ jobId: expect.any(String), status: 'created' });
  expect(status).toBe(200);
  for (;;) {
    const job = (await service.call('GET', `/v1/jobs/${body.jobId}`, { key })).body;
    if (['succeeded', 'failed', 'canceled'].includes(job.status)) return job;
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

const submitted = (...names: string[]) => names.map((name) => ({ label: `${name} ☺`, voiceprint: prints[name] }));
const identify = (extra: object): Promise<Answer['body']> =>
  run('/v1/identify', { url: 'media://conversation', voiceprints: submitted(...PEOPLE), ...extra });

/** Share of the reference turns in which the output names the correct person. */
function correctShare({ identification }: IdentifyOutput): number {
  let correct = 0;
  let total = 0;
  for (const { speaker: name, start, end } of conversationTurns(SECONDS)) {
    total += end - start;
    for (const turn of identification) {
      if (turn.speaker === `${name} ☺`) correct += Math.max(0, Math.min(end, turn.end) - Math.max(start, turn.start));
    }
  }
  return correct / total;
}

describe('a diarize job with `embeddings`', () => {
  it('returns voiceprints that an identify job matches with the same speakers', async () => {
    const { output } = await run('/v1/diarize', { url: 'media://conversation', embeddings: true });
    expect(diarizeOutputSchema.strict().safeParse(output).error).toBeUndefined();
    const found: { speaker: string; voiceprint: string }[] = output.voiceprints;
    expect(found.map(({ speaker }) => speaker)).toEqual(['SPEAKER_00', 'SPEAKER_01', 'SPEAKER_02']);
    const voiceprints = found.map(({ speaker, voiceprint }) => ({ label: `again ${speaker}`, voiceprint }));
    const again = (await run('/v1/identify', { url: 'media://conversation', voiceprints })).output as IdentifyOutput;
    expect(again.voiceprints.map(({ speaker, match }) => [speaker, match])).toEqual(
      found.map(({ speaker }) => [speaker, `again ${speaker}`]),
    );
  });
});

describe('a voiceprint job', () => {
  it('returns only a voiceprint', async () => {
    const job = await run('/v1/voiceprint', { url: 'media://adam', model: 'community-1' });
    expect(voiceprintOutputSchema.strict().safeParse(job.output).error).toBeUndefined();
    expect(job.output.voiceprint.length).toBeLessThan(20_000);
  });

  it('returns the same voiceprint for the same recording', async () => {
    const again = await run('/v1/voiceprint', { url: 'media://adam', model: null, webhook: null });
    expect(again.output.voiceprint).toBe(prints.adam);
  });

  it('fails for a recording of two people', async () => {
    await upload('two', new Uint8Array(await twoPeople()));
    const job = await run('/v1/voiceprint', { url: 'media://two' });
    expect(job).toMatchObject({ status: 'failed', output: { code: 'several_speakers' } });
    expect(job.output.error).toMatch(/more than one voice/);
  });

  it('fails for less than a second of speech and warns of a few seconds', async () => {
    await upload('silence', new Uint8Array(wav16(new Float32Array(16000 * 3), 16000)));
    const silent = await run('/v1/voiceprint', { url: 'media://silence' });
    expect(silent).toMatchObject({ status: 'failed', output: { code: 'no_speech' } });
    await upload('short', await voiceSample('beth', 0.7));
    const short = await run('/v1/voiceprint', { url: 'media://short' });
    expect(short).toMatchObject({ status: 'failed', output: { code: 'too_little_speech' } });
    await upload('little', await voiceSample('beth', 2.5));
    const little = await run('/v1/voiceprint', { url: 'media://little' });
    expect(little).toMatchObject({ status: 'succeeded', output: { warning: expect.stringMatching(/10 to 30 s/) } });
  });

  it('fails for more than 30 seconds', async () => {
    await upload('long', await conversationFile(SECONDS + 1));
    const job = await run('/v1/voiceprint', { url: 'media://long' });
    expect(job).toMatchObject({ status: 'failed', output: { code: 'audio_too_long' } });
    expect(job.output.error).toMatch(/30 seconds/);
  });

  it('is billed as one voiceprint', async () => {
    const { accountId, token } = await service.newKey({ account: 'prints', creditSeconds: 100 });
    const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://v' }, key: token });
    await service.call('PUT', body.url, { key: null, body: await voiceSample('carl', 8) });
    expect(await run('/v1/voiceprint', { url: 'media://v' }, token)).toMatchObject({ status: 'succeeded' });
    const usage = 'SELECT kind, billed_seconds FROM usage_records WHERE account_id = ?';
    expect(await service.run(usage, accountId)).toEqual([{ kind: 'voiceprint', billed_seconds: 0 }]);
    const credit = 'SELECT credit_seconds AS left FROM accounts WHERE id = ?';
    expect(await service.run(credit, accountId)).toEqual([{ left: 80 }]);
  });
});

/** Two voices one after the other, less than 30 s. */
async function twoPeople(): Promise<Uint8Array> {
  const [adam, beth] = await Promise.all([voiceSample('adam', 8), voiceSample('beth', 8)]);
  const samples = [adam, beth].flatMap((file) => Array.from(new Int16Array(file.slice(44).buffer), (v) => v / 32768));
  return wav16(samples, 16000);
}

describe('an identify job', () => {
  it('names the speakers of a conversation', async () => {
    const { status, output } = await identify({ turnLevelConfidence: true, exclusive: true, confidence: true });
    expect(status).toBe('succeeded');
    expect(identifyOutputSchema.strict().safeParse(output).error).toBeUndefined();
    expect(correctShare(output)).toBeGreaterThan(0.85);
    expect(output.voiceprints.map(({ match }: { match: string }) => match).sort()).toEqual(
      PEOPLE.map((name) => `${name} ☺`),
    );
    for (const turn of output.identification) expect(Object.keys(turn.confidence)).toHaveLength(3);
    expect(output).toHaveProperty('exclusiveDiarization');
    expect(output).toHaveProperty('confidence');
  });

  it('has a turn for each diarized turn, with the generic label without a match', async () => {
    const { output } = await identify({ voiceprints: submitted('beth'), matching: null });
    const { diarization, identification, voiceprints } = output as IdentifyOutput;
    const generic = identification.map(({ diarizationSpeaker: speaker, start, end }) => ({ speaker, start, end }));
    expect(generic).toEqual(diarization);
    const matchOf = new Map(voiceprints.map(({ speaker, match }) => [speaker, match]));
    for (const { speaker, diarizationSpeaker, match } of identification) {
      expect(match).toBe(matchOf.get(diarizationSpeaker));
      expect(speaker).toBe(match ?? diarizationSpeaker);
    }
    // Matching is exclusive by default: one voiceprint names one speaker.
    expect(voiceprints.filter(({ match }) => match === 'beth ☺')).toHaveLength(1);
    expect(voiceprints.filter(({ match }) => match === null).length).toBeGreaterThanOrEqual(1);
  });

  it('matches a voiceprint with several speakers without exclusive matching', async () => {
    const { output } = await identify({ voiceprints: submitted('adam'), matching: { exclusive: false } });
    expect(output.voiceprints.every(({ match }: { match: string }) => match === 'adam ☺')).toBe(true);
    expect(output.voiceprints.length).toBeGreaterThan(1);
  });

  it('has no match below the threshold', async () => {
    const { output } = await identify({
      voiceprints: submitted('adam'),
      // The voiceprint is from the same recording, in which other people have up to 82.
      matching: { exclusive: false, threshold: 90 },
    });
    for (const { match, confidence } of (output as IdentifyOutput).voiceprints) {
      expect(match).toBe(confidence['adam ☺'] >= 90 ? 'adam ☺' : null);
    }
    expect(output.voiceprints.some(({ match }: { match: string | null }) => match === null)).toBe(true);
    expect(output.voiceprints.some(({ match }: { match: string | null }) => match !== null)).toBe(true);
  });

  it('has the requested number of speakers', async () => {
    const { output } = await identify({ numSpeakers: 2 });
    expect(output.voiceprints).toHaveLength(2);
  });

  it('leaves no voiceprint in storage or in the log when it ends', async () => {
    const { jobId } = await identify({});
    const row = await service.db.prepare('SELECT * FROM jobs WHERE id = ?').bind(jobId).first();
    expect(JSON.stringify(row)).not.toContain(prints.adam.slice(0, 40));
    const { objects } = await service.bucket.list({ prefix: `work/${jobId}/` });
    expect(objects).toEqual([]);
    expect(service.log()).not.toContain(prints.adam.slice(0, 40));
  });

  it('accepts fifty voiceprints of the maximum length', async () => {
    const padded = `${prints.adam}${'\n'.repeat(20_000 - prints.adam.length)}`;
    const many = Array.from({ length: 50 }, (_, i) => ({ label: `person ${i}`, voiceprint: padded }));
    const { status, output } = await identify({ voiceprints: many });
    expect(status).toBe('succeeded');
    expect(Object.keys(output.voiceprints[0].confidence)).toHaveLength(50);
  });
});

describe('an identify request is refused', () => {
  const post = (body: object) => service.call('POST', '/v1/identify', { body });
  const item = (label: unknown, voiceprint: unknown = prints.adam) => ({ label, voiceprint });
  const url = 'https://example.com/a.wav';

  it.each([
    ['without voiceprints', () => undefined, ['voiceprints']],
    ['with an empty list', () => [], ['voiceprints']],
    ['with more than fifty', () => Array.from({ length: 51 }, (_, i) => item(`p${i}`)), ['voiceprints']],
    ['with an item that is not an object', () => [item('a'), 'text'], ['voiceprints.1']],
    ['with an empty label', () => [item('')], ['voiceprints.0.label']],
    ['with a label of 101 characters', () => [item('x'.repeat(101))], ['voiceprints.0.label']],
    ['with a reserved label', () => [item('Speaker_07')], ['voiceprints.0.label']],
    ['with a repeated label', () => [item('a'), item('b'), item('a')], ['voiceprints.2.label']],
    ['with a voiceprint that is too long', () => [item('a', 'A'.repeat(20_001))], ['voiceprints.0.voiceprint']],
    ['with a foreign voiceprint', () => [item('a'), item('b', btoa('x'.repeat(400)))], ['voiceprints.1.voiceprint']],
    ['with a truncated voiceprint', () => [item('a', prints.adam.slice(0, -8))], ['voiceprints.0.voiceprint']],
    ['with a changed voiceprint', () => [item('a', withChangedCharacter(prints.adam))], ['voiceprints.0.voiceprint']],
    ['with a voiceprint of another model', () => [item('a', otherModelVoiceprint())], ['voiceprints.0.voiceprint']],
    [
      'with several faults, all reported together',
      () => [item(7), item('b', 'foreign!'), item('b', null)],
      ['voiceprints.0.label', 'voiceprints.1.voiceprint', 'voiceprints.2.voiceprint', 'voiceprints.2.label'],
    ],
  ])('%s', async (_, voiceprints, fields) => {
    const answer = await post({ url, voiceprints: voiceprints() });
    expect(answer.status).toBe(400);
    expect(faultyFields(answer).sort()).toEqual([...fields].sort());
  });

  it.each([
    [{ threshold: -1 }, 'matching.threshold'],
    [{ threshold: 100.5 }, 'matching.threshold'],
    [{ threshold: '50' }, 'matching.threshold'],
    [{ exclusive: 1 }, 'matching.exclusive'],
    [7, 'matching'],
  ])('with matching %j', async (matching, field) => {
    const answer = await post({ url, voiceprints: submitted('adam'), matching });
    expect([answer.status, faultyFields(answer)]).toEqual([400, [field]]);
  });

  it('with fields that are invalid in any job request', async () => {
    const answer = await post({
      url: '',
      webhook: 'ftp://x',
      model: 'x',
      numSpeakers: 0,
      voiceprints: submitted('adam'),
    });
    expect(faultyFields(answer).sort()).toEqual(['model', 'numSpeakers', 'url', 'webhook']);
    const voiceprint = await service.call('POST', '/v1/voiceprint', { body: { url: 7, webhookStatusOnly: 'x' } });
    expect(faultyFields(voiceprint).sort()).toEqual(['url', 'webhookStatusOnly']);
  });
});

function withChangedCharacter(print: string): string {
  const middle = Math.floor(print.length / 2);
  return print.slice(0, middle) + (print[middle] === 'A' ? 'B' : 'A') + print.slice(middle + 1);
}

const otherModelVoiceprint = () =>
  encodeVoiceprint({
    embeddingId: 'another',
    embedding: new Float32Array(192).fill(1 / Math.sqrt(192)),
    secondsAlone: 9,
  });
