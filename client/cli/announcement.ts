import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { livingOwner } from '../local/owner.ts';
import { RollcallClient } from '../sdk/client.ts';

/** What `npm start` leaves for other commands of this user. */
export interface Announcement {
  readonly url: string;
  readonly key: string;
}

/**
 * What `rollcall serve` prints: addresses, and the key once.
 *
 * @param hasLinks stdout is a terminal, which shows links: the link of the playground then carries the key in its
 *   fragment, which browsers do not send
 */
export function greeting({ url, key }: Announcement, hasLinks: boolean): string {
  const page = `${url}/`;
  const playground = hasLinks ? `\u001b]8;;${page}#key=${key}\u001b\\${page}\u001b]8;;\u001b\\` : page;
  return `rollcall listens on ${url}\nplayground: ${playground}\nkey: ${key}\n`;
}

const pathIn = (stateDir: string): string => join(stateDir, 'service.json');

/** Leaves address and key, in a file that only this user can read; whole or not at all. */
export function announce(stateDir: string, service: Announcement): void {
  const path = pathIn(stateDir);
  writeFileSync(`${path}.new`, JSON.stringify(service), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Takes them away again when the service ends. */
export function withdraw(stateDir: string): void {
  rmSync(pathIn(stateDir), { force: true });
}

/**
 * The service that `npm start` runs, if it answers. Where its process was killed, the announcement stays behind, and whoever
 * listens on its port now must not get the key.
 */
export async function findAnnounced(stateDir: string): Promise<Announcement | undefined> {
  let service: Announcement;
  try {
    service = JSON.parse(readFileSync(pathIn(stateDir), 'utf8')) as Announcement;
  } catch {
    return undefined;
  }
  if (livingOwner(stateDir)?.port !== Number(new URL(service.url).port)) return undefined;
  const test = await new RollcallClient({ ...service, timeoutMs: 5000 }).test();
  return test.ok ? service : undefined;
}
