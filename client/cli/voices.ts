import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import type { VoiceprintOutput } from '../sdk/types.ts';
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
  readonly source:
    | { readonly kind: 'print'; readonly text: string }
    | { readonly kind: 'recording'; readonly recording: Recording };
}

/** Collects `NAME=FILE` options. */
export function collectVoice(text: string, before: readonly [string, string][] = []): readonly [string, string][] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError('It must be NAME=FILE.');
  return [...before, [text.slice(0, at), text.slice(at + 1)]];
}

/** Finds out what is wrong with the files before anything is started. */
export function openVoices(named: readonly [string, string][], baseDir: string): KnownVoice[] {
  const twice = named.find(([label], index) => named.findIndex(([other]) => other === label) < index);
  if (twice) throw new CliError(EXIT.usage, `--voiceprint: the name ${twice[0]} is there twice.`);
  return named.map(([label, file]) => {
    const recording = openRecording(file, baseDir);
    const text =
      recording.kind === 'file' && recording.sizeBytes <= MAX_PRINT_BYTES ? printIn(recording.path) : undefined;
    return { label, source: text === undefined ? { kind: 'recording', recording } : { kind: 'print', text } };
  });
}

function printIn(path: string): string | undefined {
  const text = readFileSync(path, 'latin1').trim();
  return text.startsWith(PRINT_START) ? text : undefined;
}

/** The voiceprints of all voices; one job for each that comes as a recording. */
export async function voiceprintsOf(
  session: Session,
  voices: readonly KnownVoice[],
): Promise<{ label: string; voiceprint: string }[]> {
  const prints: { label: string; voiceprint: string }[] = [];
  for (const { label, source } of voices) {
    const voiceprint =
      source.kind === 'print'
        ? source.text
        : (await makeVoiceprint(session, source.recording, label)).output.voiceprint;
    prints.push({ label, voiceprint });
  }
  return prints;
}

/** Makes a voiceprint of a recording of one person. */
export function makeVoiceprint(
  session: Session,
  recording: Recording,
  name: string,
): Promise<JobOutput<VoiceprintOutput>> {
  const start = (url: string) => session.client.voiceprint({ url });
  return runJob<VoiceprintOutput>(session, { recording, doing: `voice of ${name}`, start });
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
  const start = (url: string) => session.client.identify({ ...options, url, voiceprints });
  return runJob<T>(session, { recording, doing: 'identifying', start });
}
