import { rmSync, statSync } from 'node:fs';
import { Command } from 'commander';
import { runningOwner } from '../local/owner.ts';
import { type LocalService, startLocalService } from '../local/service.ts';
import { announce } from './announcement.ts';
import { usedPath } from './kept.ts';
import { localKey } from './local-key.ts';
import { EXIT, INTERRUPTED, note } from './run.ts';

const CHECK_MS = 1000;
/** Margin, because a busy machine may delay the renewals, which commands send every 5 s. */
const GRACE_SECONDS = 20;

/**
 * Runs a service without a terminal until no command has used it for the given time, then removes its state. Measures
 * the idle time in checks, because the clock also runs while the machine sleeps.
 */
async function keepService(stateDir: string, idleSecondsText: string): Promise<void> {
  const maxIdleMs = (Number(idleSecondsText) + GRACE_SECONDS) * 1000;
  let service: LocalService | undefined;
  let ending: Promise<void> | undefined;
  const end = (exitCode: number): Promise<void> => {
    ending ??= (async () => {
      await service?.stop();
      // When two services start at once, only the owner may remove the folder.
      const owner = runningOwner(stateDir);
      if (!owner || owner.pid === process.pid) rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
      process.exit(exitCode);
    })();
    return ending;
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(INTERRUPTED));

  try {
    service = await startLocalService({ stateDir, onRuntimeLost: () => void end(EXIT.failed) });
    announce(stateDir, { url: service.url, key: await localKey(service, stateDir) });
  } catch (error) {
    note(error instanceof Error ? error.message : String(error));
    return end(EXIT.failed);
  }
  let lastUseMs = 0;
  let idleMs = 0;
  setInterval(() => {
    const useMs = statSync(usedPath(stateDir), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    idleMs = useMs === lastUseMs ? idleMs + CHECK_MS : 0;
    lastUseMs = useMs;
    if (idleMs > maxIdleMs) void end(EXIT.done);
  }, CHECK_MS);
}

export const command = new Command('kept-service')
  .description('Runs a local service for other commands, which start this command.')
  .argument('<state-dir>')
  .argument('<idle-seconds>')
  .action(keepService);
