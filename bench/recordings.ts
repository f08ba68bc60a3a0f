import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { decodeFile } from '../client/audio/file.ts';
import { CliError, EXIT } from '../client/cli/run.ts';
import type { AudioPorts } from '../src/audio/recording.ts';
import { type LabelledSegment, parseSingleFileRttm } from './score/rttm.ts';
import { sharedPath } from './shared.ts';

/** Labelled recordings: the sets and their folders below `../shared/audio`. */
const FOLDERS = {
  short: 'real/short',
  real: 'real',
  acted: 'real/acted',
  meetings: 'meetings',
  dialogues: 'dialogues',
  simulated: 'simulated',
} as const;
/** Recordings that `training/calibration/dev_sets.py` generates, to choose parameters by. */
const DEV_SETS = ['monologues', 'brief', 'alike', 'many', 'far'] as const;
/** The meetings of 5 to 20 minutes that `training/meetings` generates. */
const GENERATED_SET = 'generated';
export type RecordingSet = keyof typeof FOLDERS | (typeof DEV_SETS)[number] | typeof GENERATED_SET;

export interface LabelledRecording {
  readonly set: RecordingSet;
  readonly name: string;
  readonly path: string;
  /** 16 kHz mono, decoded by the service's own code */
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
}

/** All labelled recordings, in the order of sets and names; undefined where `../shared/audio` is missing. */
export async function loadRecordings(ports: AudioPorts): Promise<LabelledRecording[] | undefined> {
  const recordings: LabelledRecording[] = [];
  for (const [set, name] of Object.entries(FOLDERS)) {
    const folder = sharedPath('audio', name);
    if (!folder) return undefined;
    recordings.push(...(await loadFolder(folder, set as keyof typeof FOLDERS, ports)));
  }
  return recordings;
}

/** The generated sets to choose parameters by, from the folder that `ROLLCALL_DEV_SETS` names; none without it. */
export async function loadDevSets(ports: AudioPorts): Promise<LabelledRecording[]> {
  const folder = process.env.ROLLCALL_DEV_SETS;
  if (!folder) return [];
  const recordings: LabelledRecording[] = [];
  for (const set of DEV_SETS) recordings.push(...(await loadFolder(join(folder, set), set, ports)));
  return recordings;
}

/** The generated meetings, from the folder that `ROLLCALL_MEETINGS` names; undefined without it. */
export async function loadGeneratedMeetings(ports: AudioPorts): Promise<LabelledRecording[] | undefined> {
  const folder = process.env.ROLLCALL_MEETINGS;
  return folder ? await loadFolder(folder, GENERATED_SET, ports) : undefined;
}

/** The sets that occur, in their order. */
export function setsOf(recordings: readonly LabelledRecording[]): RecordingSet[] {
  return [...new Set(recordings.map(({ set }) => set))];
}

/** @throws CliError for a folder without recordings */
export async function loadFolder(folder: string, set: RecordingSet, ports: AudioPorts): Promise<LabelledRecording[]> {
  const recordings: LabelledRecording[] = [];
  const files = readdirSync(folder).filter((name) => name.endsWith('.flac'));
  // Of nothing the error rate would be 0.
  if (files.length === 0) throw new CliError(EXIT.failed, `there is no FLAC in ${folder}`);
  for (const file of files.sort()) {
    const name = basename(file, '.flac');
    const path = join(folder, file);
    const reference = parseSingleFileRttm(readFileSync(join(folder, `${name}.rttm`), 'utf8'));
    recordings.push({ set, name, path, samples: await decodeFile(path, ports), reference });
  }
  return recordings;
}
