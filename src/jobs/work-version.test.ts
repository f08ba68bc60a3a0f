import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { audioPorts, concat, openRecording } from '../../test/helpers/audio.ts';
import { formatFixture, indexOf } from '../../test/helpers/indexes.ts';
import { ingestedState } from '../../test/helpers/job-world.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import type { Checkpoint } from '../audio/recording.ts';
import { WORK_VERSION } from './work-keys.ts';

const FIXTURES = new URL('../../test/fixtures/formats', import.meta.url);
const NO_RECORDING = /\.(sh|py|ts|json)$/;
const ports = audioPorts();
/**
 * Fixtures that are repeated: decoding can continue only every hundred seconds, and the fixtures are shorter. Only
 * files of these formats can be concatenated.
 */
const REPEATED = /^(adts-aac-16000|mp2-16000|mp3-8000|ogg-opus-stereo|ogg-vorbis-8000|mpegts-mp3)/;
const LEAST_SECONDS = 210;

/** Paths and types of all members; elements of arrays without their index. */
const membersOf = (value: unknown, path = ''): string[] =>
  typeof value !== 'object' || value === null
    ? [`${path}: ${typeof value}`]
    : Object.entries(value).flatMap(([name, inner]) =>
        membersOf(inner, Array.isArray(value) ? `${path}[]` : `${path}.${name}`),
      );

/** Checkpoint near the end of a recording. */
async function checkpointOf(file: Uint8Array): Promise<{ format: string; checkpoint: Checkpoint }> {
  const recording = await openRecording(file, ports);
  let samples = 0;
  for await (const block of recording.samples()) samples += block.length;
  return { format: recording.facts.format, checkpoint: recording.checkpointAt(samples) };
}

/** The fixture, and the fixture concatenated to `LEAST_SECONDS` where its format allows that. */
async function* filesOf(name: string): AsyncGenerator<Uint8Array> {
  const file = formatFixture(name);
  yield file;
  if (!REPEATED.test(name)) return;
  const { durationSeconds } = await indexOf(file);
  yield concat(...Array.from({ length: Math.ceil(LEAST_SECONDS / durationSeconds) }, () => file));
}

it('is raised when the shape of the stored state changes', async () => {
  const members = new Set(membersOf(ingestedState({ warning: 'x' })));
  const add = async (file: Uint8Array) => {
    const { format, checkpoint } = await checkpointOf(file);
    for (const member of membersOf(JSON.parse(JSON.stringify(checkpoint)))) members.add(`${format}${member}`);
  };
  for (const name of readdirSync(FIXTURES).filter((file) => !NO_RECORDING.test(file)))
    for await (const file of filesOf(name)) await add(file);
  await add(wav16(new Float32Array(LEAST_SECONDS * 16_000), 16_000));
  const shape = createHash('sha256')
    .update([...members].sort().join('\n'))
    .digest('hex')
    .slice(0, 16);
  // If this fails, raise the version and put the new hash here.
  expect([WORK_VERSION, shape]).toEqual([10, '116558b97b361000']);
});
