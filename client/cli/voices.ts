import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import type { SpeakerCount, VoiceprintOutput } from '../sdk/types.ts';
import { optionOfField } from './arguments.ts';
import { type JobOutput, must, runJob, type Session } from './job.ts';
import { openRecording, type Recording } from './recording.ts';
import { CliError, EXIT } from './run.ts';

/** Larger than any voiceprint as text, and smaller than a recording of one second. */
const MAX_PRINT_BYTES = 20_000;
/** Prefix of every voiceprint: "RCVP" in base64. */
const PRINT_START = 'UkNWU';

/** A known person, with a recording or a voiceprint. */
export interface KnownVoice {
  readonly label: string;
  /** The option given on the command line. */
  readonly option: string;
  readonly source:
    | { readonly kind: 'print'; readonly text: string }
    | { readonly kind: 'recording'; readonly recording: Recording };
}

/** Limits of a request. */
const MAX_VOICES = 50;
const MAX_NAME_CHARS = 100;

/** Collects `NAME=FILE` options. Refuses names that the service would refuse, before a voiceprint job starts. */
export function collectVoice(text: string, before: readonly [string, string][] = []): readonly [string, string][] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError('It must be NAME=FILE.');
  const name = text.slice(0, at).trim();
  if (name === '') throw new InvalidArgumentError('The name before = is blank.');
  if ([...name].length > MAX_NAME_CHARS) {
    throw new InvalidArgumentError(`The name may have ${MAX_NAME_CHARS} characters at most.`);
  }
  if (/^speaker_/i.test(name)) {
    throw new InvalidArgumentError('The name must not begin with SPEAKER_, the prefix of speakers without a name.');
  }
  if (before.length === MAX_VOICES) throw new InvalidArgumentError(`At most ${MAX_VOICES} are allowed.`);
  return [...before, [name, text.slice(at + 1)]];
}

/** Parses a confidence from 0 to 100 for commander. */
export function percent(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 100)) throw new InvalidArgumentError('It must be 0 to 100.');
  return value;
}

/** Checks the files before a service is started. */
export function openVoices(named: readonly [string, string][], baseDir: string): KnownVoice[] {
  const duplicate = named.find(([label], index) => named.findIndex(([other]) => other === label) < index);
  if (duplicate) throw new CliError(EXIT.usage, `--voiceprint: the name ${duplicate[0]} is given twice.`);
  return named.map(([label, file]) => {
    const recording = openVoice(label, file, baseDir);
    const text = voiceprintIn(recording);
    const shown = file.length > MAX_SHOWN_CHARS ? `${file.slice(0, MAX_SHOWN_CHARS)}…` : file;
    const option = `--voiceprint ${label}=${shown}`;
    return { label, option, source: text === undefined ? { kind: 'recording', recording } : { kind: 'print', text } };
  });
}

/** Largest number of characters of an address in messages: a `data:` address contains a whole recording. */
const MAX_SHOWN_CHARS = 200;

function openVoice(label: string, file: string, baseDir: string): Recording {
  try {
    return openRecording(file, baseDir);
  } catch (error) {
    throw error instanceof CliError ? new CliError(error.exitCode, `--voiceprint ${label}: ${error.message}`) : error;
  }
}

/**
 * Returns the voiceprint in a file; undefined for a recording. Accepts the lines that npm writes before it in
 * `npm run voiceprint > FILE`, and the UTF-16 of a Windows shell.
 */
export function voiceprintIn(recording: Recording): string | undefined {
  if (recording.kind !== 'file' || recording.sizeBytes > MAX_PRINT_BYTES) return undefined;
  const bytes = readFileSync(recording.path);
  const text = bytes.toString(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf16le' : 'utf8');
  return text.split(/[\s\ufeff]+/).find((word) => word.startsWith(PRINT_START));
}

/** Voiceprints computed by this process, so that each voice is analysed once for several recordings. */
const computed = new WeakMap<KnownVoice, string>();

/** Returns the voiceprints of all voices; runs a job for each recording. */
export async function voiceprintsOf(
  session: Session,
  voices: readonly KnownVoice[],
): Promise<{ label: string; voiceprint: string }[]> {
  const prints: { label: string; voiceprint: string }[] = [];
  for (const voice of voices) {
    const { label, option, source } = voice;
    const voiceprint =
      source.kind === 'print'
        ? source.text
        : (computed.get(voice) ?? (await makeVoiceprint(session, source.recording, label, option)).output.voiceprint);
    computed.set(voice, voiceprint);
    prints.push({ label, voiceprint });
  }
  return prints;
}

/** Maps a field of a request to the option that set it, and a voiceprint's index to its `--voiceprint` option. */
export function writtenAs(voices: readonly KnownVoice[]): (field: string) => string {
  return (field) => voices[Number(/^voiceprints\.(\d+)\./.exec(field)?.[1] ?? -1)]?.option ?? optionOfField(field);
}

/**
 * Runs a voiceprint job on a recording of one person.
 *
 * @param about prefix of errors and warnings; by default the name of the file
 */
export function makeVoiceprint(
  session: Session,
  recording: Recording,
  name: string,
  about?: string,
): Promise<JobOutput<VoiceprintOutput>> {
  const start = (url: string) => session.client.voiceprint({ url }, undefined, session.signal);
  return runJob<VoiceprintOutput>(session, { recording, doing: `voice of ${name}`, about, start });
}

/** Runs an identify job, after voiceprint jobs for voices that are recordings. */
export async function identify<T extends { readonly warning?: string; readonly speakerCount?: SpeakerCount }>(
  session: Session,
  recording: Recording,
  voices: readonly KnownVoice[],
  options: object,
): Promise<JobOutput<T>> {
  must(await session.client.test());
  const voiceprints = await voiceprintsOf(session, voices);
  const start = (url: string) => session.client.identify({ ...options, url, voiceprints }, undefined, session.signal);
  return runJob<T>(session, { recording, doing: 'identifying', start, nameOf: writtenAs(voices) });
}
