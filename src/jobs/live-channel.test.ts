import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LevelSession } from '../../test/helpers/level-session.ts';
import { frameOf, type Received, turnFaults } from '../../test/helpers/live-client.ts';
import type { LiveSession } from '../live/live-session.ts';
import { type ChannelEnd, type ChannelSnapshot, LiveChannel } from './live-channel.ts';
import { type AudioFormat, LiveInput } from './live-frames.ts';
import { LiveLoad } from './live-load.ts';
import { MAX_CORRECTION_BYTES, MAX_FRAME_BYTES, MAX_SENT_BYTES } from './live-ports.ts';

const FORMAT: AudioFormat = { sampleRateHz: 16_000, encoding: 'pcm_f32le' };
const noResampler = {
  open() {
    throw new Error('nothing is resampled');
  },
  contextInputSamples: () => 0,
};
const END = '{"type":"end_of_stream"}';
const audio = (value: number) => frameOf(value).buffer as ArrayBuffer;
const tick = () => new Promise<void>((wake) => setImmediate(wake));

interface Options {
  readonly openSession?: () => Promise<LiveSession>;
  readonly maxMs?: number;
  readonly format?: AudioFormat;
}

function channelOf({
  openSession = async () => new LevelSession(tick),
  maxMs = 3_600_000,
  format = FORMAT,
}: Options = {}) {
  const received: Received[] = [];
  const ends: ChannelEnd[] = [];
  const errors: unknown[] = [];
  const clock = { now: 0 };
  const ports = {
    openSession,
    format,
    maxMs,
    send: (text: string) => received.push(JSON.parse(text)),
    end: async (end: ChannelEnd) => void ends.push(end),
    onError: (error: unknown) => errors.push(error),
    now: () => clock.now,
    load: new LiveLoad(),
  };
  const channel = new LiveChannel(ports, new LiveInput(16_000, noResampler));
  return { channel, ports, received, ends, errors, clock };
}

const texts = (received: readonly Received[]) =>
  received.map(({ type, message, data }) => message ?? `${type.slice(20)} ${data?.speaker} ${data?.timestamp}`);

describe('LiveChannel', () => {
  it('sends turns as they come, closes open turns at the end, and ends once', async () => {
    const { channel, received, ends } = channelOf();
    for (const value of [0, 0.1, 0.1, 0.2]) await channel.receive(audio(value));
    expect(texts(received)).toEqual(['start SPEAKER_00 0.1', 'end SPEAKER_00 0.3', 'start SPEAKER_01 0.3']);
    await Promise.all([channel.receive(END), channel.receive(END), channel.disconnected()]);
    await channel.receive(audio(0.3));
    expect(texts(received).slice(3)).toEqual(['end SPEAKER_01 0.4']);
    expect(ends).toEqual([{ status: 'done', closeCode: 1000, closeReason: 'end of stream', receivedSeconds: 0.4 }]);
  });

  describe('with telephony audio', () => {
    // At 16 kHz, so that the test needs no resampler: a frame of 100 ms has 1600 bytes, ten telephony frames.
    const format: AudioFormat = { sampleRateHz: 16_000, encoding: 'mulaw' };
    const twilio: AudioFormat = { ...format, envelope: 'twilio' };
    /** 0.1 of full scale, and silence. */
    const [LOUD, QUIET] = [0xb1, 0xff];
    const bytes = (value: number, count: number) => new Uint8Array(count).fill(value);
    const media = (value: number, count: number, track?: string) => {
      const payload = Buffer.from(bytes(value, count)).toString('base64');
      return JSON.stringify({
        event: 'media',
        streamSid: 'MZ1',
        media: { track, chunk: '1', timestamp: '5', payload },
      });
    };

    it('joins chunks of any number of telephony frames, and pads the last frame', async () => {
      const { channel, received, ends } = channelOf({ format });
      for (const count of [160, 320, 1120]) await channel.receive(bytes(LOUD, count).buffer);
      expect([channel.receivedFrames, texts(received)]).toEqual([1, ['start SPEAKER_00 0']]);
      await channel.receive(bytes(LOUD, 3360).buffer);
      await channel.receive(bytes(QUIET, 100).buffer);
      await channel.receive(new ArrayBuffer(0));
      await channel.receive(END);
      expect(texts(received).filter((text) => text === 'Invalid chunk size')).toHaveLength(2);
      expect(ends).toEqual([expect.objectContaining({ status: 'done', receivedSeconds: 0.4 })]);
    });

    it('continues after a suspension in the middle of a frame', async () => {
      const { channel, ports } = channelOf({ format });
      await channel.receive(bytes(LOUD, 2400).buffer);
      const snapshot = await channel.suspend();
      const next = new LiveChannel(ports, new LiveInput(16_000, noResampler), snapshot?.state);
      await next.receive(bytes(LOUD, 800).buffer);
      expect(next.receivedFrames).toBe(2);
      // A client that resumes a stream sends whole frames.
      const resumed = new LiveChannel(ports, new LiveInput(16_000, noResampler), snapshot?.state, 0);
      await resumed.receive(bytes(LOUD, 800).buffer);
      expect(resumed.receivedFrames).toBe(1);
    });

    it('reads the audio of the caller from Twilio messages, and ends at `stop`', async () => {
      const { channel, received, ends } = channelOf({ format: twilio });
      await channel.receive('{"event":"connected","protocol":"Call","version":"1.0.0"}');
      await channel.receive(
        '{"event":"start","sequenceNumber":"1","start":{"mediaFormat":{"encoding":"audio/x-mulaw"}}}',
      );
      for (let i = 0; i < 10; i++) {
        await channel.receive(media(LOUD, 160, 'inbound'));
        await channel.receive(media(LOUD, 160, 'outbound'));
      }
      await channel.receive(media(QUIET, 1600));
      expect([channel.receivedFrames, texts(received)]).toEqual([2, ['start SPEAKER_00 0', 'end SPEAKER_00 0.1']]);
      for (const wrong of ['{"event":"media"}', '{"event":"media","media":{"payload":"%"}}', 'x', '{}'])
        await channel.receive(wrong);
      expect(texts(received).slice(2)).toEqual(Array(4).fill('Unknown message'));
      await channel.receive('{"event":"stop","streamSid":"MZ1"}');
      expect(ends).toEqual([expect.objectContaining({ closeCode: 1000, receivedSeconds: 0.2 })]);
    });

    it('refuses Twilio messages on a stream without the envelope', async () => {
      const { channel, received } = channelOf({ format });
      await channel.receive(media(LOUD, 1600));
      expect(texts(received)).toEqual(['Unknown message']);
    });
  });

  it('processes frames that arrive at once in order, one at a time', async () => {
    const { channel, received, ends, errors } = channelOf();
    await Promise.all([0.1, 0, 0.2, 0, 0.3].map((value) => channel.receive(audio(value))).concat(channel.receive(END)));
    expect(errors).toEqual([]);
    expect(texts(received).filter((text) => text.startsWith('start'))).toEqual([
      'start SPEAKER_00 0',
      'start SPEAKER_01 0.2',
      'start SPEAKER_02 0.4',
    ]);
    expect(ends[0]).toMatchObject({ status: 'done', receivedSeconds: 0.5 });
  });

  it('sends `match` only with starts for which the session has one', async () => {
    const session = new LevelSession();
    const push = session.push.bind(session);
    session.push = async (samples) => (await push(samples)).map((event) => ({ ...event, match: 'Ann' }));
    const { channel, received } = channelOf({ openSession: async () => session });
    for (const value of [0.1, 0]) await channel.receive(audio(value));
    expect(received.map(({ data }) => data)).toEqual([
      { timestamp: 0, speaker: 'SPEAKER_00', match: 'Ann' },
      { timestamp: 0.1, speaker: 'SPEAKER_00' },
    ]);
  });

  it('sends corrections until their total size exceeds the limit', async () => {
    const session = new LevelSession();
    const push = session.push.bind(session);
    const change = { startSeconds: 0, endSeconds: 0.1, from: 0, to: 1 };
    session.push = async (samples) => [
      ...(await push(samples)),
      { kind: 'correction', changes: Array(2000).fill(change) },
    ];
    const { channel, ports, received, ends } = channelOf({ openSession: async () => session });
    await channel.receive(audio(0.1));
    const changes = Array(2000).fill({ start: 0, end: 0.1, from: 'SPEAKER_00', to: 'SPEAKER_01' });
    expect(received.at(-1)).toEqual({ type: 'diarization_speaker_correction', data: { changes } });
    const bytes = JSON.stringify(received.at(-1)).length;
    const snapshot = (await channel.suspend())!;
    const second = new LiveChannel(ports, new LiveInput(16_000, noResampler), snapshot.state);
    for (let i = 0; i < 30; i++) await second.receive(audio(i % 2 ? 0 : 0.1));
    const corrections = received.filter(({ type }) => type === 'diarization_speaker_correction');
    expect(corrections).toHaveLength(Math.floor(MAX_CORRECTION_BYTES / bytes) + 1);
    expect(texts(received).filter((text) => text.startsWith('start')).length).toBeGreaterThan(14);
    expect(ends).toEqual([]);
  });

  it('queues at most five seconds of audio', async () => {
    const { channel, received, ends } = channelOf();
    const processed = Array.from({ length: 51 }, () => channel.receive(audio(0.1)));
    expect(received).toEqual([{ type: 'error', message: expect.stringContaining('more than 5 s') }]);
    await Promise.all(processed);
    expect(texts(received).slice(1)).toEqual(['start SPEAKER_00 0', 'end SPEAKER_00 5']);
    expect(ends).toEqual([expect.objectContaining({ status: 'done', closeCode: 1008, receivedSeconds: 5 })]);
  });

  /** A session that processes nothing until `resume` is called. */
  const slowSession = () => {
    const session = new LevelSession();
    const push = session.push.bind(session);
    let resume = () => {};
    const isResumed = new Promise<void>((done) => {
      resume = done;
    });
    session.push = async (samples) => {
      await isResumed;
      return push(samples);
    };
    return { openSession: async () => session, resume: () => resume() };
  };

  it('queues more than five seconds from a client in real time while the service is slow', async () => {
    const { openSession, resume } = slowSession();
    const { channel, ports, received, ends, clock } = channelOf({ openSession });
    for (let frame = 0; frame < 300; frame++) {
      clock.now = 100 * frame;
      void channel.receive(audio(0.1));
    }
    expect(received).toEqual([]);
    expect(ports.load.isOverloaded(clock.now)).toBe(false);
    resume();
    await channel.receive(audio(0));
    expect(texts(received)).toEqual(['start SPEAKER_00 0', 'end SPEAKER_00 30']);
    expect(ends).toEqual([]);
    // Frames waited for half a minute.
    expect(ports.load.isOverloaded(clock.now)).toBe(true);
    expect(ports.load.waitingBytes(clock.now)).toBe(0);
  });

  it('ends with 1011 if the service is too slow, with 1008 if the client is too fast', async () => {
    for (const [everyMs, end] of [
      [100, { status: 'error', closeCode: 1011, frames: 750 }],
      [40, { status: 'done', closeCode: 1008, frames: 50 }],
    ] as const) {
      const { openSession, resume } = slowSession();
      const { channel, received, ends, clock } = channelOf({ openSession });
      // More frames arrive than the queue may hold.
      for (let frame = 0; frame < 1000; frame++) {
        clock.now = everyMs * frame;
        void channel.receive(audio(0.1));
      }
      expect(received).toEqual([{ type: 'error', message: expect.any(String) }]);
      resume();
      await channel.receive(audio(0));
      expect(ends).toEqual([expect.objectContaining({ status: end.status, closeCode: end.closeCode })]);
      expect(channel.receivedFrames).toBeLessThanOrEqual(end.frames);
      expect(turnFaults(received)).toEqual([]);
    }
  });

  it('accepts a burst of frames that the network or the thread delayed', async () => {
    const { openSession, resume } = slowSession();
    const { channel, received, ends, clock } = channelOf({ openSession });
    void channel.receive(audio(0.1));
    clock.now = 20_000;
    for (let frame = 0; frame < 199; frame++) void channel.receive(audio(0.1));
    expect(received).toEqual([]);
    // Further frames are ahead of real time.
    for (let frame = 0; frame < 250; frame++) void channel.receive(audio(0.1));
    resume();
    await channel.receive(audio(0));
    expect(ends).toEqual([expect.objectContaining({ status: 'done', closeCode: 1008 })]);
    expect(channel.receivedFrames).toBeGreaterThanOrEqual(400);
  });

  it('accepts a burst of the frames that a client could not send while disconnected', async () => {
    const { openSession, resume } = slowSession();
    const { ports, ends, clock } = channelOf();
    const state = (await channelOf().channel.suspend())!.state;
    clock.now = 40_000;
    const resumed = new LiveChannel({ ...ports, openSession }, new LiveInput(16_000, noResampler), state, 0);
    for (let frame = 0; frame < 400; frame++) void resumed.receive(audio(0.1));
    resume();
    await resumed.receive(audio(0));
    expect(resumed.receivedFrames).toBe(401);
    expect(ends).toEqual([]);
    expect(ports.load.isOverloaded(clock.now)).toBe(false);
  });

  it('is kept after each ten processed seconds, and resumes with the same events', async () => {
    const values = Array.from({ length: 350 }, (_, frame) => [0, 0.1, 0.2][Math.floor(frame / 7) % 3]!);
    const plain = channelOf();
    for (const value of values) await plain.channel.receive(audio(value));
    const { ports, received } = channelOf();
    const snapshots: { snapshot: ChannelSnapshot; sentMessages: number }[] = [];
    const keep = async (snapshot: ChannelSnapshot) => void snapshots.push({ snapshot, sentMessages: received.length });
    const first = new LiveChannel({ ...ports, keep }, new LiveInput(16_000, noResampler));
    await Promise.all(values.slice(0, 40).map((value) => first.receive(audio(value))));
    for (const value of values.slice(40)) await first.receive(audio(value));
    expect(snapshots.map(({ snapshot }) => snapshot.state.receivedFrames)).toEqual([100, 200, 300]);
    for (const { snapshot, sentMessages } of snapshots) {
      const before = received.slice(0, sentMessages);
      const openSession = async () => new LevelSession(tick, snapshot.session);
      const second = channelOf();
      const resumed = new LiveChannel(
        { ...second.ports, openSession },
        new LiveInput(16_000, noResampler),
        snapshot.state,
        0,
      );
      for (const value of values.slice(snapshot.state.receivedFrames)) await resumed.receive(audio(value));
      expect([...before, ...second.received]).toEqual(plain.received);
    }
  });

  it('sends nothing once it is abandoned, even while it processes frames', async () => {
    const { openSession, resume } = slowSession();
    const { channel, received, ends } = channelOf({ openSession });
    const processed = Promise.all([0.1, 0, 0.2].map((value) => channel.receive(audio(value))));
    await tick();
    channel.abandon();
    resume();
    await processed;
    await channel.outOfCredit();
    expect([received, ends]).toEqual([[], []]);
  });

  it('sends the reason and ends when the credit is used up', async () => {
    const { channel, received, ends } = channelOf();
    await channel.receive(audio(0.1));
    await channel.outOfCredit();
    expect(texts(received)).toEqual(['start SPEAKER_00 0', "The account's credit is used up", 'end SPEAKER_00 0.1']);
    expect(ends).toEqual([expect.objectContaining({ status: 'done', closeCode: 1008, receivedSeconds: 0.1 })]);
  });

  it('ends when the messages sent exceed their limit', async () => {
    const { channel, received, ends } = channelOf();
    const bytes = JSON.stringify({ type: 'error', message: 'Unknown message' }).length;
    const limit = Math.floor(MAX_SENT_BYTES / bytes);
    await channel.receive(audio(0));
    for (let i = 0; i < limit; i++) void channel.receive('?');
    await tick();
    expect(ends).toEqual([]);
    await channel.receive('?');
    expect(ends).toEqual([expect.objectContaining({ closeCode: 1008 })]);
    await channel.receive('?');
    expect(received).toHaveLength(limit + 2);
  });

  it('continues for hours although every frame and text is faulty', async () => {
    const { channel, received, ends } = channelOf({ maxMs: 3 * 3_600_000 });
    const seconds = 2 * 3600;
    for (let i = 0; i < 10 * seconds; i++) {
      void channel.receive('{"type":"ping"}');
      await channel.receive(audio(Number.NaN));
    }
    expect(ends).toEqual([]);
    const bytes = received.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
    expect(bytes).toBeLessThan(MAX_SENT_BYTES / 2);
    for (const text of ['Unknown message', 'Chunk with a value that is not finite, taken as silence']) {
      const reports = texts(received).filter((message) => message === text).length;
      expect(reports).toBeGreaterThan(seconds);
    }
  });

  it('processes a message that arrives just when a run ends', async () => {
    for (const message of [END, audio(0)]) {
      for (let ticks = 0; ticks < 12; ticks++) {
        const { channel, ports, received } = channelOf();
        const { send } = ports;
        let late: Promise<void> | undefined;
        ports.send = (text) => {
          let delay = Promise.resolve();
          for (let i = 0; i < ticks; i++) delay = delay.then(() => {});
          late ??= delay.then(() => channel.receive(message));
          return send(text);
        };
        await channel.receive(audio(0.1));
        await Promise.all([late, tick(), tick()]);
        expect(texts(received)).toEqual(['start SPEAKER_00 0', 'end SPEAKER_00 0.1']);
      }
    }
  });

  it('flushes and ends with 1000 at the limit of audio', async () => {
    const { channel, received, ends } = channelOf({ maxMs: 1000 });
    for (let i = 0; i < 15; i++) await channel.receive(audio(0.1));
    expect(texts(received)).toEqual(['start SPEAKER_00 0', 'end SPEAKER_00 1']);
    expect(ends).toEqual([{ status: 'done', closeCode: 1000, closeReason: 'length limit', receivedSeconds: 1 }]);
  });

  it('flushes and ends with 1000 at the time limit', async () => {
    const { channel, received, ends } = channelOf();
    for (let i = 0; i < 5; i++) await channel.receive(audio(0.1));
    await channel.outlast();
    await channel.receive(audio(0.1));
    expect(texts(received)).toEqual(['start SPEAKER_00 0', 'end SPEAKER_00 0.5']);
    expect(ends).toEqual([{ status: 'done', closeCode: 1000, closeReason: 'time limit', receivedSeconds: 0.5 }]);
  });

  it('closes open turns and ends with 1011 when the session fails', async () => {
    const session = new LevelSession();
    const { channel, received, ends, errors } = channelOf({ openSession: async () => session });
    await channel.receive(audio(0.1));
    session.push = () => Promise.reject(new Error('out of luck: secret'));
    await channel.receive(audio(0.1));
    expect(received.at(1)).toEqual({ type: 'error', message: expect.not.stringContaining('luck') });
    expect(turnFaults(received)).toEqual([]);
    expect(ends).toEqual([expect.objectContaining({ status: 'error', closeCode: 1011 })]);
    expect(errors).toHaveLength(1);
  });

  it('ends with 1011 when the session cannot be opened', async () => {
    const { channel, ends } = channelOf({ openSession: () => Promise.reject(new Error('no model')) });
    await channel.open();
    await channel.receive(audio(0.1));
    expect(ends).toEqual([expect.objectContaining({ status: 'error', closeCode: 1011, receivedSeconds: 0 })]);
  });

  it('continues from a snapshot with the same events as without a break', async () => {
    const values = [0.1, 0.1, 0, 0.2, 0.2, 0.2, 0];
    const plain = channelOf();
    for (const value of values) await plain.channel.receive(audio(value));
    await plain.channel.receive(END);
    for (let cut = 0; cut <= values.length; cut++) {
      const { channel, ports, received, ends } = channelOf();
      for (const value of values.slice(0, cut)) await channel.receive(audio(value));
      const snapshot = (await channel.suspend())!;
      const openSession = async () => new LevelSession(tick, snapshot.session);
      const second = new LiveChannel({ ...ports, openSession }, new LiveInput(16_000, noResampler), snapshot.state);
      for (const value of values.slice(cut)) await second.receive(audio(value));
      await second.receive(END);
      expect(received).toEqual(plain.received);
      expect(ends).toEqual(plain.ends);
    }
  });

  it('keeps open speakers and sent bytes in its snapshot', async () => {
    const { channel, ports, received, ends } = channelOf();
    await channel.receive(audio(0.1));
    const { state } = (await channel.suspend())!;
    expect(state.sentBytes).toBeGreaterThan(0);
    const input = () => new LiveInput(16_000, noResampler);
    const broken = { ...ports, openSession: () => Promise.reject(new Error('another version')) };
    await new LiveChannel(broken, input(), state).receive(audio(0.1));
    expect(texts(received).slice(2)).toEqual(['end SPEAKER_00 0.2']);
    expect(ends).toMatchObject([{ closeCode: 1011, receivedSeconds: 0.2 }]);
    const full = { ...state, sentBytes: MAX_SENT_BYTES };
    await new LiveChannel({ ...ports, openSession: async () => new LevelSession() }, input(), full).receive('?');
    expect(ends.at(-1)).toMatchObject({ closeCode: 1008 });
  });

  it('cannot be suspended while frames are processed', async () => {
    const { channel } = channelOf();
    const processed = channel.receive(audio(0.1));
    expect(await channel.suspend()).toBeUndefined();
    await processed;
    expect(await channel.suspend()).toBeDefined();
    await channel.receive(END);
    expect(await channel.suspend()).toBeUndefined();
  });

  it('sends complete turns and ends once for any input of a client', async () => {
    const step = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.constantFrom(0, 0.1, 0.2, 0.3, 9, Number.NaN, -Infinity).map((value) => audio(value)),
      },
      { weight: 2, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => bytes.slice().buffer as ArrayBuffer) },
      { weight: 2, arbitrary: fc.constantFrom(6399, 6401, MAX_FRAME_BYTES).map((bytes) => new ArrayBuffer(bytes)) },
      { weight: 2, arbitrary: fc.oneof(fc.string(), fc.json(), fc.constant('{"type":1}')) },
      { weight: 1, arbitrary: fc.constantFrom(END, new ArrayBuffer(MAX_FRAME_BYTES + 1), 'wait', 'idle', 'gone') },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120, size: 'max' }), fc.boolean(), async (steps, isFailing) => {
        const session = new LevelSession(tick);
        if (isFailing) session.finish = () => Promise.reject(new Error('failed at the end'));
        const { channel, received, ends } = channelOf({ openSession: async () => session, maxMs: 8000 });
        for (const message of steps) {
          if (message === 'wait') await tick();
          else if (message === 'idle') void channel.idle(60_000);
          else if (message === 'gone') void channel.disconnected();
          else void channel.receive(message);
        }
        await channel.disconnected();
        expect(turnFaults(received)).toEqual([]);
        expect(ends).toHaveLength(1);
        expect(ends[0].receivedSeconds).toBe(channel.receivedFrames / 10);
        const sentMessages = received.length;
        await channel.receive(audio(0.1));
        await channel.receive('?');
        expect(received).toHaveLength(sentMessages);
      }),
      { numRuns: 300 },
    );
  });
});
