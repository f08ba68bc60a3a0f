import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type AudioPorts, type ByteSource, outputSampleCount, probeAudio, readSamples } from '../src/audio/index.ts';
import { type LabelledSegment, parseSingleFileRttm } from './score/rttm.ts';
import { sharedPath } from './shared.ts';

/** Folders of short labelled recordings. */
export const LABELLED_SETS = ['meetings', 'simulated', 'dialogues'] as const;
/** The meetings of 5 to 20 minutes that `training/meetings` generates. */
export const GENERATED_SET = 'generated';
export type RecordingSet = (typeof LABELLED_SETS)[number] | typeof GENERATED_SET;

export interface LabelledRecording {
  readonly set: RecordingSet;
  readonly name: string;
  readonly path: string;
  /** 16 kHz mono, decoded by the service's own code */
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
}

/** A file that lies in memory. */
export function memorySource(bytes: Uint8Array): ByteSource {
  return {
    sizeBytes: bytes.length,
    read: async (offset, length) => bytes.subarray(offset, offset + length),
  };
}

/**
 * Decodes a whole file to 16 kHz mono.
 *
 * @throws Error when it is not a recording that the service reads
 */
export async function decodeFile(path: string, ports: AudioPorts): Promise<Float32Array> {
  const source = memorySource(readFileSync(path));
  const probed = await probeAudio(source);
  if (!probed.ok) throw new Error(`${path}: ${probed.error.message}`);
  const samples = new Float32Array(outputSampleCount(probed.value));
  let filled = 0;
  for await (const block of readSamples(source, probed.value, ports, { startSample: 0, endSample: samples.length })) {
    samples.set(block, filled);
    filled += block.length;
  }
  return samples;
}

/** All labelled recordings, in the order of sets and names; undefined where `../shared/audio` is missing. */
export async function loadRecordings(ports: AudioPorts): Promise<LabelledRecording[] | undefined> {
  const recordings: LabelledRecording[] = [];
  for (const set of LABELLED_SETS) {
    const folder = sharedPath('audio', set);
    if (!folder) return undefined;
    recordings.push(...(await loadFolder(folder, set, ports)));
  }
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

async function loadFolder(folder: string, set: RecordingSet, ports: AudioPorts): Promise<LabelledRecording[]> {
  const recordings: LabelledRecording[] = [];
  for (const file of readdirSync(folder).sort()) {
    if (!file.endsWith('.flac')) continue;
    const name = basename(file, '.flac');
    const path = join(folder, file);
    const reference = parseSingleFileRttm(readFileSync(join(folder, `${name}.rttm`), 'utf8'));
    recordings.push({ set, name, path, samples: await decodeFile(path, ports), reference });
  }
  return recordings;
}
