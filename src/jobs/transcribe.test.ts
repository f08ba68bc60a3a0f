import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sendJson, startEngine } from '../../test/helpers/asr-engine.ts';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { TAG, useJobs } from '../../test/helpers/job-world.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { encodePart } from '../diarization/part.ts';
import { analyseShard } from '../diarization/shard.ts';
import { assembleJob } from './assemble-job.ts';
import { handleMessage } from './handle-message.ts';
import type { JobPorts, TranscriptionEngine } from './job-ports.ts';
import { Mutex } from './mutex.ts';
import { outputKey, partKey } from './work-keys.ts';

const world = useJobs();
let server: Awaited<ReturnType<typeof startEngine>>;
let engine: TranscriptionEngine | undefined;
const logged: string[] = [];
beforeAll(async () => {
  server = await startEngine();
});
afterAll(() => server.close());
beforeEach(() => {
  server.behaviours.length = 0;
  server.heard.length = 0;
  logged.length = 0;
  engine = server.engine();
  Object.assign(world.ports, {
    transcription: () => engine,
    log: (_: string, event: string) => void logged.push(event),
  });
});

/** Two speakers with a pause of two seconds between them. */
const TALK = recording([
  [[1], 40],
  [[], 2],
  [[2], 40],
]);
const mutex = new Mutex(() => 0);
const tick = (step: 'assemble' | 'transcribe', ports: JobPorts = world.ports) =>
  handleMessage(ports, mutex, { step, jobId: world.id }, 1);

/** A job whose recording has been analysed. */
async function analysed(request: object = { transcription: true }): Promise<void> {
  const settings = { transcriptionConfig: { model: 'asr-tdt-0.6b-v3' } };
  await world.running({ totalSamples: TALK.length }, { ...settings, ...request });
  const shard = { startSample: 0, endSample: TALK.length, totalSamples: TALK.length };
  const analysis = analyseShard(blocksOf(TALK), shard, fakePorts(), settingsOf('precision-2'), async () => undefined);
  await world.ports.objects.put(partKey(world.id, 0, TAG), encodePart(await analysis));
  await world.putChunks(TALK);
  await world.ports.store.nextStep(world.id, ['analyse'], 'assemble', world.now);
}
async function assembled(request?: object): Promise<void> {
  await analysed(request);
  await tick('assemble');
  expect(await world.steps()).toEqual(['transcribe']);
}

interface Output {
  readonly diarization: { speaker: string; start: number; end: number }[];
  readonly wordLevelTranscription?: { text: string; speaker: string; start: number; end: number }[];
  readonly turnLevelTranscription?: { text: string; speaker: string }[];
  readonly warning?: string;
}
async function output(): Promise<Output> {
  const bytes = await world.ports.objects.get(outputKey(world.id));
  return JSON.parse(new TextDecoder().decode(bytes)) as Output;
}
const usage = async () =>
  (
    await world.storage.db
      .prepare('SELECT kind, billed_seconds, credit_seconds FROM usage_records WHERE account_id = ? ORDER BY kind')
      .bind(world.accountId)
      .all()
  ).results;

it('assigns each word to a speaker and records the usage of the transcription', async () => {
  await assembled();
  expect(world.messages()).toContainEqual({ step: 'transcribe', jobId: world.id });
  await tick('transcribe');
  const { wordLevelTranscription: words = [], turnLevelTranscription: turns = [], ...rest } = await output();
  expect(rest).not.toHaveProperty('warning');
  expect(server.heard.map(({ fields }) => fields.language)).toEqual([undefined, undefined]);
  expect(words.length).toBeGreaterThan(100);
  for (const { speaker, start, end } of words) {
    const there = rest.diarization.filter((turn) => turn.start <= start && end <= turn.end);
    if (there.length > 0) expect(there.map((turn) => turn.speaker)).toContain(speaker);
    expect(end).toBeGreaterThan(start);
  }
  expect(new Set(words.map(({ speaker }) => speaker)).size).toBe(2);
  expect(turns.map(({ text }) => text).join(' ')).toBe(words.map(({ text }) => text).join(' '));
  expect(turns[0].text).toMatch(/^w0 w1 w2 w3\. w4 /);
  expect(await world.record()).toMatchObject({ status: 'succeeded' });
  expect(await usage()).toEqual([
    { kind: 'diarize', billed_seconds: 82, credit_seconds: 82 },
    { kind: 'transcription', billed_seconds: 82, credit_seconds: 0 },
  ]);
  expect([await world.steps(), await world.workKeys()]).toEqual([[], []]);
});

it('leaves the other members of the output byte for byte unchanged', async () => {
  const request = { exclusive: true, confidence: true, turnLevelConfidence: true };
  await analysed(request);
  await tick('assemble');
  const plain = await output();
  world.another();
  await assembled({ ...request, transcription: true });
  await tick('transcribe');
  const { wordLevelTranscription, turnLevelTranscription, ...rest } = await output();
  expect(wordLevelTranscription).toBeDefined();
  expect(turnLevelTranscription).toBeDefined();
  expect(JSON.stringify(rest)).toBe(JSON.stringify(plain));
});

it('sends only failed pieces again', async () => {
  await assembled();
  server.behaviours.push((response) => sendJson(response, 'no', 500));
  await tick('transcribe');
  expect(await world.record()).toMatchObject({ status: 'running' });
  expect(world.sent.at(-1)).toEqual({ message: { step: 'transcribe', jobId: world.id }, delaySeconds: 2 });
  await tick('transcribe');
  expect((await output()).wordLevelTranscription?.length).toBeGreaterThan(100);
  expect(server.heard).toHaveLength(3);
});

it('gives the same output after a crash at any call', async () => {
  await assembled();
  await tick('transcribe');
  const undisturbed = JSON.stringify(await output());
  for (const method of ['put', 'putStream', 'exists'] as const) {
    for (let call = 0; call < 2; call++) {
      world.another();
      await assembled();
      let calls = 0;
      const crashing = world.withObjects({
        [method]: async (...args: never[]) => {
          if (calls++ === call) throw new Error('crashed');
          return (world.ports.objects[method] as (...all: never[]) => unknown)(...args);
        },
      });
      await tick('transcribe', crashing);
      world.now += 60_000;
      if ((await world.record()).status === 'running') await tick('transcribe');
      expect(JSON.stringify(await output()), `${method} ${call}`).toBe(undisturbed);
    }
  }
}, 60_000);

it('is not disturbed by a second assembly during the transcription', async () => {
  await assembled();
  await assembleJob(world.ports, await world.record(), async () => undefined);
  expect(await world.steps()).toEqual(['transcribe']);
  await tick('transcribe');
  await tick('transcribe');
  expect(await world.record()).toMatchObject({ status: 'succeeded' });
  expect(await usage()).toHaveLength(2);
});

const failing =
  (status: number) =>
  (response: Parameters<typeof sendJson>[0]): void =>
    sendJson(response, 'no', status);

describe('an engine that fails', () => {
  async function untilOver(): Promise<number[]> {
    const pauses: number[] = [];
    for (let i = 0; i < 20 && (await world.record()).status === 'running'; i++) {
      world.now = Math.max(world.now, (await world.row('transcribe'))?.dueAt ?? 0);
      await tick('transcribe');
      if ((await world.record()).status === 'running') pauses.push(world.sent.at(-1)?.delaySeconds ?? 0);
    }
    return pauses;
  }

  it.each([
    ['is down', 500, [2, 5, 15, 30, 60, 120, 300], 'does not answer'],
    ['refuses', 401, [2, 5], 'rejects the request'],
  ] as const)(
    'permanently and %s costs only the transcript, after growing pauses',
    async (_, status, pauses, reason) => {
      await assembled();
      server.behaviours.push(...Array.from({ length: 40 }, () => failing(status)));
      expect(await untilOver()).toEqual(pauses);
      const { diarization, wordLevelTranscription, turnLevelTranscription, warning } = await output();
      expect([wordLevelTranscription, turnLevelTranscription]).toEqual([undefined, undefined]);
      expect(diarization.length).toBeGreaterThan(1);
      expect(warning).toBe(`The recording could not be transcribed: the transcription engine ${reason}.`);
      expect(await usage()).toEqual([{ kind: 'diarize', billed_seconds: 82, credit_seconds: 82 }]);
    },
  );

  it('is retried no sooner than its Retry-After', async () => {
    await assembled();
    server.behaviours.push((response) => {
      response.writeHead(429, { 'retry-after': '77' });
      response.end();
    });
    await tick('transcribe');
    expect(world.sent.at(-1)?.delaySeconds).toBe(77);
  });

  it('now and then is retried without limit while pieces succeed', async () => {
    await assembled();
    engine = { ...server.engine(), maxPieceSeconds: 8, concurrency: 1 };
    for (let i = 0; i < 12; i++) {
      server.behaviours.push((response) => sendJson(response, 'no', 500));
      server.behaviours.push((response) => sendJson(response, { text: `word${i}.` }));
    }
    const pauses = await untilOver();
    expect(Math.max(...pauses)).toBe(2);
    expect((await output()).turnLevelTranscription?.length).toBeGreaterThan(1);
  });

  it('by silence has a minute for its first piece, which is sent alone', async () => {
    await assembled();
    const calls: (number | undefined)[] = [];
    const working = server.engine();
    let open = 0;
    const openAtOnce: number[] = [];
    engine = {
      ...working,
      maxPieceSeconds: 8,
      async transcribe(samples, options) {
        calls.push(options.timeoutMs);
        openAtOnce.push(++open);
        try {
          return await working.transcribe(samples, options);
        } finally {
          open--;
        }
      },
    };
    await tick('transcribe');
    expect(calls.slice(0, 3)).toEqual([60_000, undefined, undefined]);
    expect(openAtOnce.slice(0, 2)).toEqual([1, 1]);
    expect(Math.max(...openAtOnce)).toBeGreaterThan(1);
    expect(await world.record()).toMatchObject({ status: 'succeeded' });
  });

  it('that is no longer configured costs only the transcript', async () => {
    await assembled();
    engine = undefined;
    await tick('transcribe');
    expect((await output()).warning).toMatch(/no engine is configured/);
  });

  it('with exceptions in every start, or crashes, costs only the transcript', async () => {
    const { maxPieceSeconds, concurrency } = server.engine();
    engine = { maxPieceSeconds, concurrency, transcribe: () => Promise.reject(new Error('broken')) };
    await assembled();
    await untilOver();
    expect((await output()).warning).toMatch(/the service failed several times/);
    world.another();
    await assembled();
    await world.storage.db.prepare('UPDATE outbox SET starts = 10 WHERE job_id = ?').bind(world.id).run();
    await tick('transcribe');
    expect(await world.record()).toMatchObject({ status: 'succeeded' });
    expect((await output()).warning).toMatch(/the service failed several times/);
  });
});

it('warns if an engine returns no word times or no words', async () => {
  await assembled();
  for (let i = 0; i < 2; i++) server.behaviours.push((response) => sendJson(response, { text: 'One two. Three.' }));
  await tick('transcribe');
  const spread = await output();
  expect(spread.warning).toMatch(/gave no times of words/);
  expect(spread.wordLevelTranscription).toHaveLength(6);
  world.another();
  await assembled();
  for (let i = 0; i < 2; i++) server.behaviours.push((response) => sendJson(response, { text: '' }));
  await tick('transcribe');
  expect(await output()).toMatchObject({
    wordLevelTranscription: [],
    turnLevelTranscription: [],
    warning: 'No words were recognised.',
  });
});

it('hands over when its time slice is used up', async () => {
  await assembled();
  const slow = server.engine();
  engine = {
    maxPieceSeconds: 8,
    concurrency: 1,
    transcribe: (...args) => {
      world.now += 10_000;
      return slow.transcribe(...args);
    },
  };
  await tick('transcribe');
  expect(server.heard).toHaveLength(2);
  expect(world.sent.at(-1)).toEqual({ message: { step: 'transcribe', jobId: world.id }, delaySeconds: 0 });
  while ((await world.record()).status === 'running') await tick('transcribe');
  expect((await output()).wordLevelTranscription?.length).toBeGreaterThan(100);
});

it('ends without an output when its job is canceled', async () => {
  await assembled();
  server.behaviours.push((response) => {
    void world.ports.store
      .cancel(world.id, { code: 'canceled', message: 'x' }, world.now)
      .then(() => sendJson(response, { text: 'late' }));
  });
  await tick('transcribe');
  expect(await world.record()).toMatchObject({ status: 'canceled' });
  expect(await world.ports.objects.exists(outputKey(world.id))).toBe(false);
});
