import { openLiveStream, type RollcallClient, SAMPLE_RATE_HZ, TurnCollector } from '../../client/live/index.ts';
import { type Problem, problemOf } from './problem.ts';
import { redraw } from './redraw.ts';
import type { Turn } from './turns.ts';

/** Turns as they are told so far, and how much has been heard. */
export type Hear = (turns: readonly Turn[], seconds: number) => void;

/** Between two drawings of what was heard, at least. */
const REDRAW_MS = 250;

/**
 * Sends what the microphone hears to a live stream until the signal, and tells the turns as they come, corrected.
 *
 * @returns what went wrong
 */
export async function listen(client: RollcallClient, hear: Hear, signal: AbortSignal): Promise<Problem | undefined> {
  const microphone = await openMicrophone();
  if ('message' in microphone) return microphone;
  const opened = await openLiveStream(client, { corrections: true });
  if (!opened.ok) {
    await microphone.close();
    return problemOf(opened.error);
  }
  const stream = opened.value;
  microphone.onSamples((samples) => void stream.write(samples));
  let isGone = false;
  const finish = () => void microphone.close().then(() => stream.end());
  microphone.onGone(() => {
    isGone = true;
    finish();
  });
  if (signal.aborted) finish();
  else signal.addEventListener('abort', finish, { once: true });
  const told = new TurnCollector<string>();
  const show = () => hear(told.turns(stream.sentSeconds), stream.sentSeconds);
  const stop = redraw(show, REDRAW_MS);
  for await (const event of stream) told.add(event);
  stop();
  show();
  const close = await stream.closed;
  await microphone.close();
  if (isGone) return { message: 'The microphone has gone.', details: [] };
  return close.kind === 'done' || close.kind === 'aborted' ? undefined : { message: close.message, details: [] };
}

interface Microphone {
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
  const context = new AudioContext({ sampleRate: SAMPLE_RATE_HZ });
  try {
    await context.audioWorklet.addModule('/playground/microphone-frames.js');
    const source = context.createMediaStreamSource(media);
    const frames = new AudioWorkletNode(context, 'microphone-frames', {
      channelCount: 1,
      channelCountMode: 'explicit',
    });
    // Its output is silence; without a way to the loudspeaker some browsers would not run it.
    source.connect(frames).connect(context.destination);
    return {
      onSamples(take) {
        frames.port.onmessage = ({ data }: MessageEvent<Float32Array>) => take(data);
      },
      onGone(tell) {
        for (const track of media.getTracks()) track.addEventListener('ended', tell);
      },
      async close() {
        release();
        frames.port.onmessage = null;
        if (context.state !== 'closed') await context.close();
      },
    };
  } catch (error) {
    release();
    await context.close();
    return { message: `This browser cannot bring its microphone to ${SAMPLE_RATE_HZ} Hz.`, details: [String(error)] };
  }
}
