import { readFileSync } from 'node:fs';
import { type AudioIndex, probeAudio } from '../../src/audio/index.ts';
import { audioPorts, memorySource } from './audio.ts';

const { decoder } = audioPorts();

/** A file of `test/fixtures/formats`. */
export const formatFixture = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../fixtures/formats/${name}`, import.meta.url)));

/** The index of a recording, through JSON as it is stored. @throws what is wrong with it */
export async function indexOf(file: Uint8Array): Promise<AudioIndex> {
  const probed = await probeAudio(memorySource(file), decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  return JSON.parse(JSON.stringify(probed.value)) as AudioIndex;
}

/** The index of a recording that must be of a format. */
export async function indexAs<F extends AudioIndex['format']>(
  format: F,
  file: Uint8Array,
): Promise<Extract<AudioIndex, { format: F }>> {
  const index = await indexOf(file);
  if (index.format !== format) throw new Error(`not ${format} but ${index.format}`);
  return index as Extract<AudioIndex, { format: F }>;
}
