/** What the browser's audio thread has and its types do not. */
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
/** Of the context that the processor runs in. */
declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

/** 100 ms: what goes over the wire at once. */
const PORTION_SAMPLES = Math.round(sampleRate / 10);

/** Runs in the audio thread: passes the first channel on in portions. */
class MicrophoneFrames extends AudioWorkletProcessor {
  private portion = new Float32Array(PORTION_SAMPLES);
  private filled = 0;

  /** @returns true: more will come */
  process([channels]: readonly (readonly Float32Array[])[]): boolean {
    for (const sample of channels?.[0] ?? []) {
      this.portion[this.filled++] = sample;
      if (this.filled < PORTION_SAMPLES) continue;
      this.port.postMessage(this.portion, [this.portion.buffer]);
      this.portion = new Float32Array(PORTION_SAMPLES);
      this.filled = 0;
    }
    return true;
  }
}

registerProcessor('microphone-frames', MicrophoneFrames);

// A module, as all files here.
export {};
