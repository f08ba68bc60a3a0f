import { openAudioFile } from '../audio/file.ts';
import { nodeAudio } from '../audio/ports.ts';
import { findRecorder, record } from './recorder.ts';
import { openRecording } from './recording.ts';
import { CliError, EXIT, note } from './run.ts';

/** Source of a stream's audio. */
export interface LiveSource {
  readonly kind: 'file' | 'microphone';
  /** Yields 16 kHz mono audio until the signal aborts. Each chunk may overwrite the previous one. */
  chunks(signal: AbortSignal): AsyncGenerator<Float32Array>;
  close(): Promise<void>;
}

const MICROPHONE = 'mic';

/** Longest chunk of a file. */
const CHUNK_SAMPLES = 1600;

/** Checks and opens the source before a service is started. */
export async function openLiveSource(name: string, baseDir: string): Promise<LiveSource> {
  if (name === MICROPHONE) {
    const recorder = findRecorder();
    return { kind: 'microphone', chunks: (signal) => record(recorder, signal), close: async () => {} };
  }
  const recording = openRecording(name, baseDir);
  if (recording.kind === 'url') {
    throw new CliError(EXIT.usage, `${name}: only a file or ${MICROPHONE} can be streamed, not an address.`);
  }
  const opened = await openAudioFile(recording.path, nodeAudio());
  if (!opened.ok) throw new CliError(EXIT.failed, `${name}: ${opened.error.message}`);
  const file = opened.value;
  async function* chunks(signal: AbortSignal): AsyncGenerator<Float32Array> {
    for await (const block of file.blocks()) {
      for (let at = 0; at < block.length; at += CHUNK_SAMPLES) {
        if (signal.aborted) return;
        yield block.subarray(at, at + CHUNK_SAMPLES);
      }
    }
    const warning = file.warning();
    if (warning !== undefined) note(`warning: ${name}: ${warning}`);
  }
  return { kind: 'file', chunks, close: () => file.close() };
}
