import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import type { VoiceprintOutput } from '../sdk/types.ts';
import { optionOfField } from './arguments.ts';
import { type JobOutput, must, runJob, type Session } from './job.ts';
import { openRecording, type Recording } from './recording.ts';
import { CliError, EXIT } from './run.ts';

/** A voiceprint as text is far shorter than this, and a recording longer than a second is not. */
const MAX_PRINT_BYTES = 20_000;
/** How every voiceprint begins: "RCVP" in base64. */
const PRINT_START = 'UkNWU';

/** A person whose voice is known: by a recording, or by a voiceprint that was made before. */
export interface KnownVoice {
  readonly label: string;
  /** The option that it came with, as a person wrote it. */
  readonly option: string;
  readonly source:
    | { readonly kind: 'print'; readonly text: string }
    | { readonly kind: 'recording'; readonly recording: Recording };
}

/** Most voices that one request takes, and most characters of a name. */
const MAX_VOICES = 50;
const MAX_NAME_CHARS = 100;

/** Collects `NAME=FILE` options; what the service would say of a name is said before a voiceprint is made for it. */
export function collectVoice(text: string, before: readonly [string, string][] = []): readonly [string, string][] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError('It must be NAME=FILE.');
  const name = text.slice(0, at).trim();
  if (name === '') throw new InvalidArgumentError('The name in front of = is blank.');
  if ([...name].length > MAX_NAME_CHARS) {
    throw new InvalidArgumentError(`The name may have ${MAX_NAME_CHARS} characters at most.`);
  }
  if (/^speaker_/i.test(name)) {
    throw new InvalidArgumentError('The name must not begin with SPEAKER_, as speakers without a name do.');
  }
  if (before.length === MAX_VOICES) throw new InvalidArgumentError(`There may be ${MAX_VOICES} at most.`);
  return [...before, [name, text.slice(at + 1)]];
}

/** A confidence from 0 to 100, for commander. */
export function percent(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 100)) throw new InvalidArgumentError('It must be 0 to 100.');
  return value;
}

/** Finds out what is wrong with the files before anything is started. */
export function openVoices(named: readonly [string, string][], baseDir: string): KnownVoice[] {
  const twice = named.find(([label], index) => named.findIndex(([other]) => other === label) < index);
  if (twice) throw new CliError(EXIT.usage, `--voiceprint: the name ${twice[0]} is there twice.`);
  return named.map(([label, file]) => {
    const recording = openVoice(label, file, baseDir);
    const text = printIn(recording);
    const option = `--voiceprint ${label}=${file.length > MAX_SHOWN_CHARS ? `${file.slice(0, MAX_SHOWN_CHARS)}…` : file}`;
    return { label, option, source: text === undefined ? { kind: 'recording', recording } : { kind: 'print', text } };
  });
}

/** Longest part of an address that is repeated in a message: `data:` holds a whole recording. */
const MAX_SHOWN_CHARS = 200;

function openVoice(label: string, file: string, baseDir: string): Recording {
  try {
    return openRecording(file, baseDir);
  } catch (error) {
    throw error instanceof CliError ? new CliError(error.exitCode, `--voiceprint ${label}: ${error.message}`) : error;
  }
}

/**
 * The voiceprint that a file holds in place of a recording. Also where `npm run voiceprint > FILE` has put npm's own lines before it, or a
 * Windows shell has written UTF-16.
 */
export function printIn(recording: Recording): string | undefined {
  if (recording.kind !== 'file' || recording.sizeBytes > MAX_PRINT_BYTES) return undefined;
  const bytes = readFileSync(recording.path);
  const text = bytes.toString(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf16le' : 'utf8');
  return text.split(/[\s\ufeff]+/).find((word) => word.startsWith(PRINT_START));
}

/** Voiceprints of this process, so that a voice is not analysed again for each recording. */
const known = new WeakMap<KnownVoice, string>();

/** The voiceprints of all voices; one job for each that comes as a recording. */
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
        : (known.get(voice) ?? (await makeVoiceprint(session, source.recording, label, option)).output.voiceprint);
    known.set(voice, voiceprint);
    prints.push({ label, voiceprint });
  }
  return prints;
}

/** Names what a person wrote that became a field of a request: the voice in place of its number, or else the option. */
export function writtenAs(voices: readonly KnownVoice[]): (field: string) => string {
  return (field) => voices[Number(/^voiceprints\.(\d+)\./.exec(field)?.[1] ?? -1)]?.option ?? optionOfField(field);
}

/**
 * Makes a voiceprint of a recording of one person.
 *
 * @param about what errors and warnings are about; the name of the file if it is left out
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

/** Runs an identify job, after the voiceprint jobs it needs. */
export async function identify<T extends { readonly warning?: string }>(
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
