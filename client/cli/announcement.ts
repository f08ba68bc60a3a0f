import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runningOwner } from '../local/owner.ts';
import { writePrivateFile } from '../local/paths.ts';
import { RollcallClient } from '../sdk/client.ts';

/** Address and key of a running service, for other commands of this user. */
export interface Announcement {
  readonly url: string;
  readonly key: string;
}

/**
 * Formats the output of `rollcall serve`: the addresses, and the key once.
 *
 * @param hasLinks whether stdout is a terminal, which shows links. Then the link to the playground has the key in its
 *   fragment, which browsers do not send to servers
 */
export function greeting({ url, key }: Announcement, hasLinks: boolean): string {
  const page = `${url}/`;
  const playground = hasLinks ? `\u001b]8;;${page}#key=${key}\u001b\\${page}\u001b]8;;\u001b\\` : page;
  return `rollcall listens on ${url}\nplayground: ${playground}\nkey: ${key}\n`;
}

const pathIn = (stateDir: string): string => join(stateDir, 'service.json');

/** Records address and key of a service that has started. */
export function announce(stateDir: string, service: Announcement): void {
  writePrivateFile(pathIn(stateDir), JSON.stringify(service));
}

/** Removes the announcement of a service that ends. */
export function withdraw(stateDir: string): void {
  rmSync(pathIn(stateDir), { force: true });
}

/**
 * Returns the announced service, if it answers. A killed process leaves its announcement, and another program that now
 * listens on its port must not receive the key.
 */
export async function findAnnounced(stateDir: string): Promise<Announcement | undefined> {
  let service: Announcement;
  try {
    service = JSON.parse(readFileSync(pathIn(stateDir), 'utf8')) as Announcement;
  } catch {
    return undefined;
  }
  if (runningOwner(stateDir)?.port !== Number(new URL(service.url).port)) return undefined;
  const test = await new RollcallClient({ ...service, timeoutMs: 5000 }).test();
  return test.ok ? service : undefined;
}
