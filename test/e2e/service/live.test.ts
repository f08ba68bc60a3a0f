import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_SENT_BYTES } from '../../../src/jobs/live-ports.ts';
import { encodeVoiceprint } from '../../../src/voiceprint/voiceprint.ts';
import { type Answer, type ContractService, startContractService } from '../../contract/service.ts';
import { connect, END_OF_STREAM, frameOf, framesOf, type LiveClient, turnFaults } from '../../helpers/live-client.ts';
import { conversationSamples, quickExchange } from '../../helpers/voices.ts';

const MIB = 1024 * 1024;
const IDLE_SECONDS = 25;

let service: ContractService;
beforeAll(async () => {
  service = await startContractService({ LIVE_IDLE_SECONDS: String(IDLE_SECONDS) });
});
afterAll(() => service?.stop());

interface Stream extends LiveClient {
  readonly id: string;
  readonly url: string;
  readonly key: string;
}

let accounts = 0;
/** A new account for one test, because open streams and usage count per account. */
const newAccount = (creditSeconds = 3600) => service.newKey({ account: `live-${++accounts}`, creditSeconds });

async function open(body: object = {}, key?: string): Promise<Stream> {
  const token = key ?? (await newAccount()).token;
  const created = await service.call('POST', '/v1/live', { key: token, body });
  expect(created).toMatchObject({ status: 200 });
  return { ...(await connect(created.body.url)), ...created.body, key: token };
}

const read = async ({ id, key }: { id: string; key: string }): Promise<Answer['body']> =>
  (await service.call('GET', `/v1/live/${id}`, { key })).body;
const totals = async (key: string) => (await service.call('GET', '/v1/usage', { key })).body.totals;
const errorsOf = ({ received }: LiveClient) =>
  received.filter(({ type }) => type === 'error').map(({ message }) => message);
const answered = (client: LiveClient, count: number) =>
  expect.poll(() => client.received.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(count);

/** Ends the stream and checks that it ended without faults. */
async function end(stream: Stream): Promise<void> {
  stream.send(END_OF_STREAM);
  expect(await stream.closed).toMatchObject({ code: 1000 });
  expect(turnFaults(stream.received)).toEqual([]);
  expect(await read(stream)).toMatchObject({ status: 'done', completedAt: expect.any(String) });
}

describe('frames', () => {
  it('of another size are reported as errors and ignored', async () => {
    const stream = await open();
    for (const bytes of [6399, 6401, 0, MIB]) stream.send(new Uint8Array(bytes));
    await answered(stream, 4);
    await stream.stream([frameOf(0)]);
    await end(stream);
    expect(stream.received).toEqual(Array(4).fill({ type: 'error', message: 'Invalid chunk size' }));
    expect(await totals(stream.key)).toEqual({ billedSeconds: 20, jobs: 1, voiceprints: 0 });
  });

  it.each([
    ['a byte more than 1 MiB', MIB + 1],
    ['32 MiB', 32 * MIB],
  ])('of %s end the stream with 1009', async (_, bytes) => {
    const stream = await open();
    await stream.stream([frameOf(0)]);
    stream.send(new Uint8Array(bytes));
    expect(await stream.closed).toMatchObject({ code: 1009 });
    expect(turnFaults(stream.received)).toEqual([]);
    await expect.poll(() => read(stream)).toMatchObject({ status: 'done', completedAt: expect.any(String) });
  });

  it('with NaN or infinity are reported and count as silence; clipped ones are accepted', async () => {
    const stream = await open();
    const notFinite = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((value) => {
      const samples = new Float32Array(1600);
      samples[1599] = value;
      return new Uint8Array(samples.buffer);
    });
    await stream.stream([...notFinite, frameOf(3e38), frameOf(-4)]);
    await end(stream);
    expect(errorsOf(stream)).toEqual(Array(3).fill(expect.stringContaining('not finite')));
  });
});

describe('telephony', () => {
  it('in the messages of a Twilio media stream is diarized and billed', async () => {
    const samples = await conversationSamples(16);
    // The mean of two samples at 16 kHz is one at 8 kHz.
    const bytes = Uint8Array.from({ length: samples.length / 2 }, (_, i) =>
      muLaw((samples[2 * i] + samples[2 * i + 1]) / 2),
    );
    const stream = await open({ envelope: 'twilio' });
    stream.send('{"event":"connected","protocol":"Call","version":"1.0.0"}');
    for (let at = 0; at < bytes.length; at += 160) {
      const payload = Buffer.from(bytes.subarray(at, at + 160)).toString('base64');
      stream.send(JSON.stringify({ event: 'media', media: { track: 'inbound', payload } }));
      if (at % 800 === 0) await sleep(100);
    }
    stream.send('{"event":"stop"}');
    expect(await stream.closed).toMatchObject({ code: 1000 });
    expect([turnFaults(stream.received), errorsOf(stream)]).toEqual([[], []]);
    const speakers = new Set(stream.received.map(({ data }) => data?.speaker));
    expect(speakers.size).toBeGreaterThanOrEqual(2);
    expect(await read(stream)).toMatchObject({ status: 'done', input: { envelope: 'twilio' } });
    expect(await totals(stream.key)).toEqual({ billedSeconds: 20, jobs: 1, voiceprints: 0 });
  }, 60_000);
});

/** ITU-T G.711 µ-law of a sample in −1…1. */
function muLaw(sample: number): number {
  const magnitude = Math.min(32_635, Math.abs(Math.round(sample * 32_768))) + 0x84;
  const exponent = Math.floor(Math.log2(magnitude)) - 7;
  const mantissa = (magnitude >> (exponent + 3)) & 15;
  return ~((sample < 0 ? 0x80 : 0) | (exponent << 4) | mantissa) & 0xff;
}

describe('text messages', () => {
  it('that are unknown are reported, and the stream continues', async () => {
    const stream = await open();
    const texts = [
      '',
      'end_of_stream',
      '{"type":"end_of',
      '{}',
      '[]',
      'null',
      '1',
      '{"type":"audio"}',
      '{"type":null}',
    ];
    for (const text of [...texts, `{"type":"${'x'.repeat(100_000)}"}`, '['.repeat(500_000)]) stream.send(text);
    await answered(stream, texts.length + 2);
    expect(errorsOf(stream)).toEqual(Array(texts.length + 2).fill('Unknown message'));
    await end(stream);
  });

  it.each(['x'.repeat(MIB + 1), 'é'.repeat(600_000)])(
    'of more than 1 MiB end the stream with 1009 (%#)',
    async (text) => {
      const stream = await open();
      stream.send(text);
      expect(await stream.closed).toMatchObject({ code: 1009 });
    },
  );

  it.each([[1000], [4321], [undefined]])('a close with code %s is answered within 5 s', async (code) => {
    const stream = await open();
    await stream.stream([frameOf(0.3), frameOf(0.3)]);
    const closedAt = Date.now();
    stream.socket.close(code);
    expect(await stream.closed).toMatchObject({ code: code ?? 1000 });
    expect(Date.now() - closedAt).toBeLessThan(5000);
    expect(await read(stream)).toMatchObject({ status: 'done' });
  });

  it('end_of_stream ends the stream; later messages are ignored', async () => {
    const stream = await open();
    await stream.stream([frameOf(0.5), frameOf(0.5)]);
    stream.send(END_OF_STREAM);
    for (let i = 0; i < 300; i++) stream.send(frameOf(0.5));
    stream.send('nonsense');
    stream.send(END_OF_STREAM);
    expect(await stream.closed).toMatchObject({ code: 1000 });
    expect(errorsOf(stream)).toEqual([]);
    const [row] = await service.run('SELECT billed_seconds FROM usage_records WHERE job_id = ?', stream.id);
    expect(row).toEqual({ billed_seconds: 20 });
  });
});

describe('protection', () => {
  it('closes a stream whose audio arrives faster than it can be processed', async () => {
    const stream = await open();
    for (let i = 0; i < 1000; i++) stream.send(frameOf(0.1));
    expect(await stream.closed).toMatchObject({ code: 1008 });
    expect(errorsOf(stream)).toEqual([expect.stringContaining('more than 5 s')]);
    expect(turnFaults(stream.received)).toEqual([]);
    expect(await read(stream)).toMatchObject({ status: 'done' });
    expect((await totals(stream.key)).jobs).toBe(1);
  });

  it('closes the connection of a client that never reads', { timeout: 60_000 }, async () => {
    const stream = await open();
    await stream.stream([frameOf(0)]);
    stream.socket.pause();
    // Each message is answered with an error of about fifty bytes.
    const flood = async () => {
      for (let i = 0; i < 200_000 && stream.socket.readyState === stream.socket.OPEN; i++) {
        stream.send('x');
        if (i % 1000 === 0) await sleep(1);
      }
    };
    await flood();
    await expect.poll(() => read(stream), { timeout: 20_000 }).toMatchObject({ status: 'done' });
    await sleep(12_000);
    stream.socket.resume();
    expect([1006, 1008]).toContain((await stream.closed).code);
    const sent = stream.received.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
    // How much arrives depends on the buffers of the two sockets. The last message is not counted in the limit.
    expect(sent).toBeLessThan(MAX_SENT_BYTES + 200);
  });

  // Both tests wait for the idle limit, so they run concurrently.
  it.concurrent('closes a stream that receives only text, and bills the received audio', {
    timeout: 60_000,
  }, async () => {
    const stream = await open();
    await stream.stream([frameOf(0.5), frameOf(0.5)]);
    const startedAt = Date.now();
    const noise = setInterval(() => stream.send('noise'), 5000);
    expect(await stream.closed).toMatchObject({ code: 1008 });
    clearInterval(noise);
    expect(Math.abs(Date.now() - startedAt - IDLE_SECONDS * 1000)).toBeLessThan(3000);
    expect(errorsOf(stream).at(-1)).toContain(`${IDLE_SECONDS} s`);
    expect(turnFaults(stream.received)).toEqual([]);
    expect(await read(stream)).toMatchObject({ status: 'done', completedAt: expect.any(String) });
    expect(await totals(stream.key)).toMatchObject({ billedSeconds: 20, jobs: 1 });
  });

  it.concurrent('closes a stream that never received anything at the idle limit', {
    timeout: 60_000,
  }, async () => {
    const startedAt = Date.now();
    const stream = await open();
    expect(await stream.closed).toMatchObject({ code: 1008 });
    expect(Math.abs(Date.now() - startedAt - IDLE_SECONDS * 1000)).toBeLessThan(6000);
    expect(errorsOf(stream)).toHaveLength(1);
    expect(await totals(stream.key)).toMatchObject({ billedSeconds: 0, jobs: 0 });
  });
});

describe('a stream of speech', () => {
  it('has the same turns when its object is evicted during a silence', {
    timeout: 120_000,
  }, async () => {
    const frames = framesOf(await conversationSamples(30));
    const turnsOf = async (stream: Stream, quietMs: number) => {
      await stream.stream(frames.slice(0, 120), 50);
      await sleep(quietMs);
      await stream.stream(frames.slice(120), 50);
      await end(stream);
      return stream.received;
    };
    // The platform evicts an idle object from memory after ten seconds.
    const [expected, resumed] = await Promise.all([turnsOf(await open(), 0), turnsOf(await open(), 19_000)]);
    expect(expected.length).toBeGreaterThan(2);
    for (const { type, data } of expected) {
      expect(type).toMatch(/^diarization_speaker_(start|end)$/);
      expect(data).toEqual({ timestamp: expect.any(Number), speaker: expect.stringMatching(/^SPEAKER_0[0-7]$/) });
    }
    expect(resumed).toEqual(expected);
    expect(service.log()).toContain('"event":"live_resumed"');
    expect(service.log()).toMatch(/"event":"live_lag","streamId":"[^"]+","frames":\d+,"meanLagMs":\d+,"maxLagMs":\d+/);
  });

  it('has a match on starts when voiceprints are given', { timeout: 60_000 }, async () => {
    const unmatched = encodeVoiceprint({
      embeddingId: 'embedder-v6',
      embedding: new Float32Array(192).map((_, i) => (i % 3) - 1),
      secondsAlone: 10,
    });
    const frames = framesOf(await conversationSamples(8));
    const stream = await open({
      voiceprints: [{ label: 'Nobody', voiceprint: unmatched }],
      latency: 300,
      maxSpeakers: 2,
    });
    await stream.stream(frames, 50);
    await end(stream);
    const starts = stream.received.filter(({ type }) => type === 'diarization_speaker_start');
    expect(starts.length).toBeGreaterThan(0);
    for (const { type, data } of stream.received) {
      expect('match' in data!).toBe(type === 'diarization_speaker_start');
      expect([null, undefined]).toContain(data!.match);
    }
  });

  it('sends corrections when requested, with the same starts and ends', {
    timeout: 120_000,
  }, async () => {
    const frames = framesOf((await quickExchange()).samples);
    const eventsOf = async (options: object) => {
      const stream = await open({ latency: 300, ...options });
      // In real time, because a slow machine refuses a stream that is ahead of it.
      await stream.stream(frames, 100);
      await end(stream);
      return stream.received;
    };
    const [plain, corrected] = await Promise.all([eventsOf({}), eventsOf({ corrections: true })]);
    const isCorrection = ({ type }: { type: string }) => type === 'diarization_speaker_correction';
    expect(plain.filter(isCorrection)).toEqual([]);
    expect(corrected.filter((message) => !isCorrection(message))).toEqual(plain);
    const corrections = corrected.filter(isCorrection);
    expect(corrections.length).toBeGreaterThan(0);
    const speaker = expect.stringMatching(/^SPEAKER_0[0-7]$/);
    const change = { start: expect.any(Number), end: expect.any(Number), from: speaker, to: speaker };
    for (const { data } of corrections) for (const each of data!.changes!) expect(each).toEqual(change);
  });

  it.each([
    [8000, 'pcm_s16le', 1600],
    [44_100, 'pcm_f32le', 17_640],
  ])('accepts %i Hz in %s', { timeout: 60_000 }, async (sampleRate, encoding, bytes) => {
    const stream = await open({ sampleRate, encoding });
    stream.send(frameOf(0));
    await stream.stream(Array(15).fill(new Uint8Array(bytes)), 50);
    await end(stream);
    expect(errorsOf(stream)).toEqual(['Invalid chunk size']);
    const [row] = await service.run('SELECT billed_seconds FROM usage_records WHERE job_id = ?', stream.id);
    expect(row).toEqual({ billed_seconds: 20 });
  });
});

describe('a fault of the service', () => {
  it('is reported, closes with 1011, and ends the stream as an unbilled error', { timeout: 60_000 }, async () => {
    const broken = await startContractService();
    try {
      const { objects } = await broken.bucket.list({ prefix: 'models/' });
      await broken.bucket.delete(objects.map(({ key }) => key));
      const { body } = await broken.call('POST', '/v1/live', { body: {} });
      const client = await connect(body.url);
      expect(await client.closed).toMatchObject({ code: 1011 });
      expect(errorsOf(client)).toEqual([expect.not.stringContaining('model')]);
      const stream = (await broken.call('GET', `/v1/live/${body.id}`)).body;
      expect(stream).toMatchObject({ status: 'error', startedAt: expect.any(String), completedAt: expect.any(String) });
      expect(await broken.run('SELECT * FROM usage_records')).toEqual([]);
      expect(broken.log()).toContain('"event":"live_failed"');
    } finally {
      await broken.stop();
    }
  });
});
