import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { keyInFragment } from '../../public/playground/session.ts';
import { recordOwner } from '../local/owner.ts';
import { announce, findAnnounced, greeting } from './announcement.ts';

it('npm start prints the key, and an address of the playground that gives it the key', () => {
  const key = 'eyJhbGciOiJIUzI1NiJ9.eyJzY29wZSI6ImpvYnM6cmVhZCJ9.a-b_c';
  const lines = greeting({ url: 'http://127.0.0.1:8787', key }).split('\n');
  expect(lines).toContain(`key: ${key}`);
  const address = new URL(lines.find((line) => line.startsWith('playground: '))!.replace('playground: ', ''));
  expect(address.href).toBe(`http://127.0.0.1:8787/#key=${key}`);
  expect(keyInFragment(address)).toBe(key);
});

it('an announcement whose process is dead, or that is of another port, is not asked and gets no key', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'rollcall-announced-'));
  const asked: string[] = [];
  const stranger = createServer((request, response) => {
    asked.push(`${request.headers.authorization}`);
    response.setHeader('Content-Type', 'application/json').end('{"status":"OK","message":""}');
  });
  await new Promise<void>((done) => stranger.listen(0, '127.0.0.1', done));
  try {
    const { port } = stranger.address() as AddressInfo;
    announce(stateDir, { url: `http://127.0.0.1:${port}`, key: 'secret' });
    expect(await findAnnounced(stateDir)).toBeUndefined();
    recordOwner(stateDir, { port: port + 1 });
    expect(await findAnnounced(stateDir)).toBeUndefined();
    expect(asked).toEqual([]);
    recordOwner(stateDir, { port });
    expect(await findAnnounced(stateDir)).toMatchObject({ key: 'secret' });
    expect(asked).toEqual(['Bearer secret']);
  } finally {
    stranger.close();
    rmSync(stateDir, { recursive: true });
  }
});
