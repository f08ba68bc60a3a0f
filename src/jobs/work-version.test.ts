import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { formatFixture, indexOf } from '../../test/helpers/indexes.ts';
import { WORK_VERSION } from './keys.ts';

const FIXTURES = new URL('../../test/fixtures/formats', import.meta.url);
const NO_RECORDING = /\.(sh|py|ts|json)$/;

/** Paths of all members, elements of arrays without their numbers. */
const membersOf = (value: unknown, path = ''): string[] =>
  typeof value !== 'object' || value === null
    ? [`${path}: ${typeof value}`]
    : Object.entries(value).flatMap(([name, inner]) =>
        membersOf(inner, Array.isArray(value) ? `${path}[]` : `${path}.${name}`),
      );

it('is raised with the shape of an index: one of another version cannot be read', async () => {
  const members = new Set<string>();
  for (const name of readdirSync(FIXTURES).filter((file) => !NO_RECORDING.test(file))) {
    const index = await indexOf(formatFixture(name));
    for (const member of membersOf(index)) members.add(`${index.format}${member}`);
  }
  const shape = createHash('sha256')
    .update([...members].sort().join('\n'))
    .digest('hex')
    .slice(0, 16);
  // Where this fails, raise the version and note the new shape.
  expect([WORK_VERSION, shape]).toEqual([7, '02b18994abd3f8f4']);
});
