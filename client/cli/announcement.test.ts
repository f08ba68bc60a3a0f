import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { keyInFragment } from '../../public/playground/session.ts';
import { startServer } from '../../test/helpers/http-server.ts';
import { recordOwner } from '../local/owner.ts';
import { announce, findAnnounced, greeting } from './announcement.ts';

describe('the banner of rollcall serve', () => {
  const key = 'eyJhbGciOiJIUzI1NiJ9.eyJzY29wZSI6ImpvYnM6cmVhZCJ9.a-b_c';
  const service = { url: 'http://127.0.0.1:8787', key };

  it('contains the key once', () => {
    const lines = greeting(service, false).split('\n');
    expect(lines).toContain(`key: ${key}`);
    expect(lines).toContain('playground: http://127.0.0.1:8787/');
    expect(lines.filter((line) => line.includes(key))).toHaveLength(1);
  });

  it('links to the playground with the key on a terminal', () => {
    const link =
      greeting(service, true)
        .split(/\s/)
        .find((word) => word.includes(';;http'))
        ?.split(';;')[1] ?? '';
    const [address] = link.split(String.fromCharCode(27));
    expect(keyInFragment(new URL(address))).toBe(key);
  });
});

it('sends no key to a service whose owner has ended or has another port', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'rollcall-announced-'));
  const authorizations: string[] = [];
  const server = await startServer((request, response) => {
    authorizations.push(`${request.headers.authorization}`);
    response.setHeader('Content-Type', 'application/json').end('{"status":"OK","message":""}');
  });
  try {
    const port = Number(new URL(server.origin).port);
    announce(stateDir, { url: server.origin, key: 'secret' });
    expect(await findAnnounced(stateDir)).toBeUndefined();
    recordOwner(stateDir, { port: port + 1 });
    expect(await findAnnounced(stateDir)).toBeUndefined();
    expect(authorizations).toEqual([]);
    recordOwner(stateDir, { port });
    expect(await findAnnounced(stateDir)).toMatchObject({ key: 'secret' });
    expect(authorizations).toEqual(['Bearer secret']);
  } finally {
    await server.close();
    rmSync(stateDir, { recursive: true });
  }
});
