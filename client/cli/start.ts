import { Command } from 'commander';
import { defaultStateDir } from '../local/paths.ts';
import { type LocalService, startLocalService } from '../local/service.ts';
import { keepServiceFromInterrupts } from '../local/uninterrupted.ts';
import { announce, greeting, withdraw } from './announcement.ts';
import { onInterrupt, outlivesTerminal } from './interrupt.ts';
import { useLocalEngine } from './local-engine.ts';
import { localKey } from './local-key.ts';
import { print } from './print.ts';
import { CliError, EXIT, INTERRUPTED, note, runCommand } from './run.ts';
import { describeSystemError } from './system-error.ts';

const DEFAULT_PORT = 8787;

async function start(): Promise<void> {
  const stateDir = defaultStateDir();
  let service: LocalService | undefined;
  const stop = async (): Promise<void> => {
    if (!service) process.exit(INTERRUPTED); // in the middle of its start
    withdraw(stateDir);
    await service.stop();
    process.exit(EXIT.done);
  };
  onInterrupt(() => void stop());
  if (outlivesTerminal()) keepServiceFromInterrupts();

  const engine = await useLocalEngine();
  service = await startLocalService({
    stateDir,
    port: readPort(process.env.PORT),
    onLog: (text) => process.stderr.write(text),
    onDeath: () => {
      withdraw(stateDir);
      note('rollcall: the runtime (workerd) keeps ending unexpectedly. Nothing is lost: start again with npm start.');
      process.exit(EXIT.failed);
    },
  }).catch((error: unknown) => {
    throw new CliError(
      EXIT.failed,
      describeSystemError(error) ?? (error instanceof Error ? error.message : String(error)),
    );
  });

  try {
    await tell(service, stateDir);
    if (engine !== undefined) note(`Transcription: the engine of npm run asr, ${engine}`);
  } catch (error) {
    // A service whose key nobody has seen would hold the port for nothing.
    withdraw(stateDir);
    await service.stop();
    throw error;
  }
}

/** Tells the person at the terminal, and other commands, where the service is and its key. */
async function tell(service: LocalService, stateDir: string): Promise<void> {
  const key = await localKey(service, stateDir);
  announce(stateDir, { url: service.url, key });
  await print(greeting({ url: service.url, key }));
}

function readPort(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_PORT;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new CliError(EXIT.usage, `PORT must be a whole number from 0 to 65535, not "${text}".`);
  }
  return port;
}

const command = new Command('start')
  .description('Runs the whole service on this machine until it is interrupted. PORT chooses the port (8787).')
  .action(start);
await runCommand(command);
