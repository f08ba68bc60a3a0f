import { expect, it } from 'vitest';
import { keyInFragment } from '../../public/playground/session.ts';
import { greeting } from './announcement.ts';

it('npm start prints the key, and an address of the playground that gives it the key', () => {
  const key = 'eyJhbGciOiJIUzI1NiJ9.eyJzY29wZSI6ImpvYnM6cmVhZCJ9.a-b_c';
  const lines = greeting({ url: 'http://127.0.0.1:8787', key }).split('\n');
  expect(lines).toContain(`key: ${key}`);
  const address = new URL(lines.find((line) => line.startsWith('playground: '))!.replace('playground: ', ''));
  expect(address.href).toBe(`http://127.0.0.1:8787/#key=${key}`);
  expect(keyInFragment(address)).toBe(key);
});
