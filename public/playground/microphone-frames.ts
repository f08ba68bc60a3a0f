/** Globals of the browser's audio thread, which the DOM's types lack. */
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
/** Hz. */
declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

/** A frame of a live stream, 100 ms. */
const FRAME_SAMPLES = Math.round(sampleRate / 10);

/** Runs in the audio thread: sends the first channel to the page in frames. */
class MicrophoneFrames extends AudioWorkletProcessor {
  private frame = new Float32Array(FRAME_SAMPLES);
  private filled = 0;

  /** @returns true to keep the processor running */
  process([channels]: readonly (readonly Float32Array[])[]): boolean {
    for (const sample of channels?.[0] ?? []) {
      this.frame[this.filled++] = sample;
      if (this.filled < FRAME_SAMPLES) continue;
      this.port.postMessage(this.frame, [this.frame.buffer]);
      this.frame = new Float32Array(FRAME_SAMPLES);
      this.filled = 0;
    }
    return true;
  }
}

registerProcessor('microphone-frames', MicrophoneFrames);

// Makes this file a module.
export {};
