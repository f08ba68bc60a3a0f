import { openAudioFile } from '../audio/file.ts';
import { nodeAudio } from '../audio/ports.ts';
import { findRecorder, record } from './recorder.ts';
import { openRecording } from './recording.ts';
import { CliError, EXIT, note } from './run.ts';

/** Where the audio of a stream comes from. */
export interface LiveSource {
  readonly kind: 'file' | 'microphone';
  /** 16 kHz mono; a chunk is a view that the next one may overwrite. Ends at the signal, too. */
  chunks(signal: AbortSignal): AsyncGenerator<Float32Array>;
  close(): Promise<void>;
}

const MICROPHONE = 'mic';

/** Longest chunk of a file: the stream is paced in steps of this. */
const CHUNK_SAMPLES = 1600;

/** Finds out what is wrong with the source before anything is started. */
export async function openLiveSource(name: string, baseDir: string): Promise<LiveSource> {
  if (name === MICROPHONE) {
    const recorder = findRecorder();
    return { kind: 'microphone', chunks: (signal) => record(recorder, signal), close: async () => {} };
  }
  const recording = openRecording(name, baseDir);
  if (recording.kind === 'url') {
    throw new CliError(EXIT.usage, `${name}: only a file or ${MICROPHONE} can be streamed, no address.`);
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
