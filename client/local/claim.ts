import { createServer } from 'node:net';
import { forgetOwner, killOrphans, recordOwner, takeState } from './owner.ts';
import { makePrivateDir, persistDir } from './paths.ts';
import { LocalStateError } from './state-error.ts';

/** The port or the state folder is taken. */
export class LocalServiceBusy extends LocalStateError {}

/** How long a command such as `npm run key` may hold a state folder before the service gives up. */
const COMMAND_WAIT_MS = 20_000;

/**
 * Takes a state folder for this process and clears away what a killed one left.
 *
 * @param port 0 takes a free one
 * @param use `brief` for a command that will be done in a moment: a service that starts meanwhile waits for it
 * @returns the port
 * @throws LocalServiceBusy when another process has the port or the state folder
 */
export async function claimState(stateDir: string, port: number, use: { brief?: boolean } = {}): Promise<number> {
  makePrivateDir(stateDir);
  const deadline = Date.now() + COMMAND_WAIT_MS;
  let owner = await takeState(stateDir, use);
  while ((owner?.brief || owner?.starting) && Date.now() < deadline) {
    await new Promise((wake) => setTimeout(wake, 50));
    owner = await takeState(stateDir, use);
  }
  if (owner) {
    throw new LocalServiceBusy(`The service runs already on http://127.0.0.1:${owner.port} (process ${owner.pid}).`);
  }
  try {
    makePrivateDir(persistDir(stateDir), { closes: true });
    const killed = await killOrphans(stateDir);
    // A killed process may be gone from the list a moment before the kernel has closed its sockets.
    const claimed = await claimPort(port, killed.length > 0 ? Date.now() + 5000 : 0);
    recordOwner(stateDir, { port: claimed, ...use });
    return claimed;
  } catch (error) {
    forgetOwner(stateDir);
    throw error;
  }
}

/**
 * Finds out in advance whether the port is free: workerd only tells on its log.
 *
 * @param deadline until when a taken port is tried again
 */
export async function claimPort(port: number, deadline: number): Promise<number> {
  for (;;) {
    const tried = await listen(port);
    if (typeof tried === 'number') return tried;
    if (tried.code !== 'EADDRINUSE' || Date.now() >= deadline) {
      const why = tried.code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be used (${tried.code})`;
      const remedy = 'Choose another one with the environment variable PORT, for example 8788.';
      throw new LocalServiceBusy(`Port ${port} on 127.0.0.1 ${why}. ${remedy}`);
    }
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

/** Listens for a moment; gives the port or why it cannot be had. */
function listen(port: number): Promise<number | NodeJS.ErrnoException> {
  return new Promise((done) => {
    const probe = createServer();
    probe.once('error', done);
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = probe.address();
      probe.close(() => done(typeof address === 'object' && address ? address.port : port));
    });
  });
}
