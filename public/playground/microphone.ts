import { openLiveStream, type RollcallClient, TurnCollector } from '../../client/live/index.ts';
import { aborted } from '../../client/sdk/pause.ts';
import { type Problem, problemOf } from './problem.ts';
import type { Turn } from './turns.ts';

/** Called with the turns so far and the seconds of audio sent. */
export type ShowTurns = (turns: readonly Turn[], seconds: number) => void;

/** Shortest interval between two drawings. */
const REDRAW_MS = 250;
/** Largest share of the page's time for drawing, because the page must also send audio. */
const MAX_DRAWING_SHARE = 0.1;
/** Frames of 100 ms that are kept while the stream opens. More than 5 s at once would end the stream. */
const MAX_WAITING_FRAMES = 30;
/** Rates of a live stream, the best first. */
const RATES_HZ = [16_000, 48_000, 44_100, 24_000, 8000];

/**
 * Sends the microphone's samples to a live stream until the signal aborts, and reports the corrected turns.
 *
 * @param onSamples called with the samples that it sends
 * @returns the fault, if any
 */
export async function listen(
  client: RollcallClient,
  showTurns: ShowTurns,
  signal: AbortSignal,
  onSamples?: (samples: Float32Array, sampleRateHz: number) => void,
): Promise<Problem | undefined> {
  const microphone = await openUnlessAborted(signal);
  if (microphone === undefined || 'message' in microphone) return microphone;
  const opened = await openLiveStream(client, { corrections: true, sampleRate: microphone.sampleRateHz, signal });
  if (signal.aborted) {
    await microphone.close();
    // Otherwise the audio since the opening would be billed.
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
  let isDisconnected = false;
  const finish = () => void microphone.close().then(() => stream.end());
  microphone.onDisconnect(() => {
    isDisconnected = true;
    finish();
  });
  signal.addEventListener('abort', finish, { once: true });
  const collector = new TurnCollector<string>();
  const show = () => showTurns(collector.turns(stream.sentSeconds), stream.sentSeconds);
  const stop = redraw(show, REDRAW_MS);
  for await (const event of stream) collector.add(event);
  stop();
  show();
  const close = await stream.closed;
  await microphone.close();
  if (isDisconnected) return { message: 'The microphone was disconnected.', details: [] };
  return close.kind === 'done' || close.kind === 'aborted' ? undefined : { message: close.message, details: [] };
}

/** Opens the microphone. @returns undefined if the signal aborts before the user answers the browser's question */
async function openUnlessAborted(signal: AbortSignal): Promise<Microphone | Problem | undefined> {
  const opening = openMicrophone();
  const opened = await Promise.race([opening, aborted(signal)]);
  if (opened !== undefined && !signal.aborted) return opened;
  // Closes the microphone if the user allows it later.
  void opening.then((late) => ('message' in late ? undefined : late.close()));
  return undefined;
}

interface Microphone {
  readonly sampleRateHz: number;
  onSamples(handle: (samples: Float32Array) => void): void;
  /** Calls back when the microphone is unplugged or the browser revokes the permission. */
  onDisconnect(callback: () => void): void;
  close(): Promise<void>;
}

function faultOf(error: unknown): string {
  const name = error instanceof DOMException ? error.name : '';
  if (name === 'NotAllowedError') return 'The microphone is not allowed. Allow it for this page in the browser.';
  if (name === 'NotFoundError') return 'No microphone was found.';
  return 'The microphone cannot be used.';
}

async function openMicrophone(): Promise<Microphone | Problem> {
  // Browsers offer the microphone only on https and on loopback hosts.
  if (!navigator.mediaDevices) return { message: 'The microphone needs a page on https.', details: [] };
  let media: MediaStream;
  try {
    media = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch (error) {
    return { message: faultOf(error), details: [String(error)] };
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
    const waiting = new WaitingFrames();
    frames.port.onmessage = ({ data }: MessageEvent<Float32Array>) => waiting.put(data);
    // The output is silence. Some browsers only run a node that is connected to the loudspeaker.
    source.connect(frames).connect(context.destination);
    let closing: Promise<void> | undefined;
    return {
      sampleRateHz: context.sampleRate,
      onSamples: (handle) => waiting.passTo(handle),
      onDisconnect(callback) {
        for (const track of media.getTracks()) {
          if (track.readyState === 'ended') callback();
          else track.addEventListener('ended', callback);
        }
      },
      close() {
        release();
        frames.port.onmessage = null;
        // A second call would throw while the context is being closed.
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

/** Opens a context at the best rate that the browser allows; Firefox allows only the rate of the microphone. */
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
  return { message: `This browser cannot read its microphone at ${RATES_HZ.join(', ')} Hz.`, details };
}

/** Keeps the last frames until a handler is set. */
class WaitingFrames {
  private frames: Float32Array[] = [];
  private handle: ((frame: Float32Array) => void) | undefined;

  put(frame: Float32Array): void {
    if (this.handle) {
      this.handle(frame);
      return;
    }
    this.frames.push(frame);
    if (this.frames.length > MAX_WAITING_FRAMES) this.frames.shift();
  }

  passTo(handle: (frame: Float32Array) => void): void {
    this.handle = handle;
    for (const frame of this.frames.splice(0)) handle(frame);
  }
}

/** Draws at an interval, and less often if drawing is slow. @returns a function that stops it */
export function redraw(draw: () => void, intervalMs: number, nowMs = () => performance.now()): () => void {
  let timer = setTimeout(drawNow, intervalMs);
  function drawNow(): void {
    const startedMs = nowMs();
    draw();
    timer = setTimeout(drawNow, Math.max(intervalMs, (nowMs() - startedMs) / MAX_DRAWING_SHARE));
  }
  return () => clearTimeout(timer);
}
