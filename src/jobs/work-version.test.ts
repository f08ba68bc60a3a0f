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
 * Decoding can continue every hundred seconds, and the fixtures are shorter: formats whose files may be repeated are.
 */
const REPEATED = /^(adts-aac-16000|mp2-16000|mp3-8000|ogg-opus-stereo|ogg-vorbis-8000|mpegts-mp3)/;
const LEAST_SECONDS = 210;

/** Paths of all members, elements of arrays without their numbers. */
const membersOf = (value: unknown, path = ''): string[] =>
  typeof value !== 'object' || value === null
    ? [`${path}: ${typeof value}`]
    : Object.entries(value).flatMap(([name, inner]) =>
        membersOf(inner, Array.isArray(value) ? `${path}[]` : `${path}.${name}`),
      );

/** Where another process would continue near the end of a recording. */
async function checkpointOf(file: Uint8Array): Promise<{ format: string; checkpoint: Checkpoint }> {
  const recording = await openRecording(file, ports);
  let samples = 0;
  for await (const block of recording.samples()) samples += block.length;
  return { format: recording.facts.format, checkpoint: recording.checkpointAt(samples) };
}

/** The files of a fixture: itself, and as often in a row as it takes. */
async function* filesOf(name: string): AsyncGenerator<Uint8Array> {
  const file = formatFixture(name);
  yield file;
  if (!REPEATED.test(name)) return;
  const { durationSeconds } = await indexOf(file);
  yield concat(...Array.from({ length: Math.ceil(LEAST_SECONDS / durationSeconds) }, () => file));
}

it('is raised with the shape of a state: one of another version cannot be resumed', async () => {
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
  // Where this fails, raise the version and note the new shape.
  expect([WORK_VERSION, shape]).toEqual([10, '116558b97b361000']);
});
