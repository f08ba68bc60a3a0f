import { readFileSync } from 'node:fs';
import { audioPorts, type Decoded, memorySource, probeAudio } from './audio.ts';

const { decoder } = audioPorts();

/** A file of `test/fixtures/formats`. */
export const formatFixture = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../fixtures/formats/${name}`, import.meta.url)));

/** Facts of the decoded recording. @throws the message of its fault */
export async function indexOf(file: Uint8Array): Promise<Decoded> {
  const probed = await probeAudio(memorySource(file), decoder);
  if (!probed.ok) throw new Error(probed.error.message);
  return probed.value;
}

/** The same, for a recording that must have the given format. */
export async function indexAs(format: string, file: Uint8Array): Promise<Decoded> {
  const index = await indexOf(file);
  if (index.format !== format) throw new Error(`not ${format} but ${index.format}`);
  return index;
}
