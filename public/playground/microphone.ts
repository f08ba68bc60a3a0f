import { openLiveStream, type RollcallClient, TurnCollector } from '../../client/live/index.ts';
import { type Problem, problemOf } from './problem.ts';
import { Recent } from './recent.ts';
import { redraw } from './redraw.ts';
import type { Turn } from './turns.ts';

/** Called with the turns so far, and the seconds of audio that were sent. */
export type Hear = (turns: readonly Turn[], seconds: number) => void;

/** Between two drawings of what was heard, at least. */
const REDRAW_MS = 250;
/** Tenths of a second that are kept while the stream is opened. A stream takes five seconds at once. */
const WAITING_PORTIONS = 30;
/** Rates of a live stream, the best first. */
const RATES_HZ = [16_000, 48_000, 44_100, 24_000, 8000];

/**
 * Sends the microphone's samples to a live stream until the signal aborts, and reports the turns, corrected.
 *
 * @param onSamples called with the samples that are sent
 * @returns what went wrong
 */
export async function listen(
  client: RollcallClient,
  hear: Hear,
  signal: AbortSignal,
  onSamples?: (samples: Float32Array, sampleRateHz: number) => void,
): Promise<Problem | undefined> {
  const microphone = await openedUnless(signal);
  if (microphone === undefined || 'message' in microphone) return microphone;
  const opened = await openLiveStream(client, { corrections: true, sampleRate: microphone.sampleRateHz, signal });
  if (signal.aborted) {
    await microphone.close();
    // What was heard while it opened would be billed.
    if (opened.ok) opened.value.abort();
    return undefined;
  }
  if (!opened.ok) {
    await microphone.close();
    return problemOf(opened.error);
  }
  const stream = opened.value;
  microphone.onSamples((samples) => {
    onSamples?.(samples, microphone.sampleRateHz);
    void stream.write(samples);
  });
  let isGone = false;
  const finish = () => void microphone.close().then(() => stream.end());
  microphone.onGone(() => {
    isGone = true;
    finish();
  });
  signal.addEventListener('abort', finish, { once: true });
  const collector = new TurnCollector<string>();
  const show = () => hear(collector.turns(stream.sentSeconds), stream.sentSeconds);
  const stop = redraw(show, REDRAW_MS);
  for await (const event of stream) collector.add(event);
  stop();
  show();
  const close = await stream.closed;
  await microphone.close();
  if (isGone) return { message: 'The microphone has gone.', details: [] };
  return close.kind === 'done' || close.kind === 'aborted' ? undefined : { message: close.message, details: [] };
}

/** The microphone, or why there is none; nothing where it was given up before the person had answered the browser. */
async function openedUnless(signal: AbortSignal): Promise<Microphone | Problem | undefined> {
  const opening = openMicrophone();
  const givenUp = new Promise<undefined>((done) => {
    if (signal.aborted) done(undefined);
    else signal.addEventListener('abort', () => done(undefined), { once: true });
  });
  const opened = await Promise.race([opening, givenUp]);
  if (opened !== undefined && !signal.aborted) return opened;
  // The answer may come at any time yet.
  void opening.then((late) => ('message' in late ? undefined : late.close()));
  return undefined;
}

interface Microphone {
  readonly sampleRateHz: number;
  onSamples(take: (samples: Float32Array) => void): void;
  /** Unplugged, or taken away by the browser: it would be silence from then on. */
  onGone(tell: () => void): void;
  close(): Promise<void>;
}

function whyNot(error: unknown): string {
  const name = error instanceof DOMException ? error.name : '';
  if (name === 'NotAllowedError') return 'The microphone is not allowed. Allow it for this page in the browser.';
  if (name === 'NotFoundError') return 'There is no microphone.';
  return 'The microphone cannot be used.';
}

async function openMicrophone(): Promise<Microphone | Problem> {
  // Browsers have it on https and on this very machine alone.
  if (!navigator.mediaDevices) return { message: 'This page has no microphone: it must come over https.', details: [] };
  let media: MediaStream;
  try {
    media = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch (error) {
    return { message: whyNot(error), details: [String(error)] };
  }
  const release = () => {
    for (const track of media.getTracks()) track.stop();
  };
  const opened = openContext(media);
  if ('message' in opened) {
    release();
    return opened;
  }
  const { context, source } = opened;
  try {
    await context.audioWorklet.addModule('/playground/microphone-frames.js');
    const frames = new AudioWorkletNode(context, 'microphone-frames', {
      channelCount: 1,
      channelCountMode: 'explicit',
    });
    // The last samples while the stream is opened. More of them would end the stream: audio that comes too fast.
    const recent = new Recent<Float32Array>(WAITING_PORTIONS);
    frames.port.onmessage = ({ data }: MessageEvent<Float32Array>) => recent.put(data);
    // Its output is silence; without a way to the loudspeaker some browsers would not run it.
    source.connect(frames).connect(context.destination);
    let closing: Promise<void> | undefined;
    return {
      sampleRateHz: context.sampleRate,
      onSamples: (take) => recent.take(take),
      onGone(tell) {
        for (const track of media.getTracks()) {
          if (track.readyState === 'ended') tell();
          else track.addEventListener('ended', tell);
        }
      },
      close() {
        release();
        frames.port.onmessage = null;
        // Once: a context that is being closed refuses to be closed again.
        closing ??= context.close();
        return closing;
      },
    };
  } catch (error) {
    release();
    await context.close();
    return { message: 'This browser cannot read its microphone.', details: [String(error)] };
  }
}

/** A context at the best rate that the browser allows for the microphone: in Firefox only that of the device. */
function openContext(media: MediaStream): { context: AudioContext; source: MediaStreamAudioSourceNode } | Problem {
  const details: string[] = [];
  for (const options of [{ sampleRate: RATES_HZ[0] }, {}]) {
    let context: AudioContext | undefined;
    try {
      context = new AudioContext(options);
      if (!RATES_HZ.includes(context.sampleRate)) throw new Error(`the microphone has ${context.sampleRate} Hz`);
      return { context, source: context.createMediaStreamSource(media) };
    } catch (error) {
      details.push(String(error));
      void context?.close();
    }
  }
  return { message: `This browser cannot bring its microphone to one of ${RATES_HZ.join(', ')} Hz.`, details };
}
