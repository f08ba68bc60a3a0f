import { join } from 'node:path';
import { Command } from 'commander';
import { defaultStateDir } from '../local/paths.ts';
import type { LocalService } from '../local/service.ts';
import { keepServiceFromInterrupts } from '../local/workerd-program.ts';
import { announce, greeting, withdraw } from './announcement.ts';
import { onInterrupt, outlivesTerminal } from './interrupt.ts';
import { useLocalEngine } from './local-engine.ts';
import { localKey } from './local-key.ts';
import { print } from './print.ts';
import { CliError, EXIT, INTERRUPTED, note } from './run.ts';
import { describeSystemError } from './system-error.ts';

const DEFAULT_PORT = 8787;

interface Options {
  readonly port?: string;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

async function serve({ port = process.env.PORT, verbose, json }: Options): Promise<void> {
  const stateDir = defaultStateDir();
  let service: LocalService | undefined;
  const stop = async (): Promise<void> => {
    if (!service) process.exit(INTERRUPTED); // during its start
    withdraw(stateDir);
    await service.stop();
    process.exit(EXIT.done);
  };
  onInterrupt(() => void stop());
  if (outlivesTerminal()) keepServiceFromInterrupts();
  const portNumber = readPort(port);

  note('rollcall is starting …');
  const engine = await useLocalEngine();
  // Imported after the message, because Miniflare's import takes most of a second.
  const { startLocalService } = await import('../local/service.ts');
  service = await startLocalService({
    stateDir,
    port: portNumber,
    onLog: (text) => void (verbose && process.stderr.write(text)),
    onRuntimeLost: () => {
      withdraw(stateDir);
      note('rollcall: the runtime (workerd) keeps ending unexpectedly. No job is lost: start the service again.');
      process.exit(EXIT.failed);
    },
  }).catch((error: unknown) => {
    throw new CliError(
      EXIT.failed,
      describeSystemError(error) ?? (error instanceof Error ? error.message : String(error)),
    );
  });

  try {
    const key = await localKey(service, stateDir);
    const found = { url: service.url, key };
    announce(stateDir, found);
    const playground = `${service.url}/`;
    await print(json ? `${JSON.stringify({ ...found, playground })}\n` : greeting(found, process.stdout.isTTY));
    if (engine !== undefined) note(`Transcription: the engine of npm run asr, ${engine}`);
    if (!verbose) note(`log: ${join(stateDir, 'service.log')}`);
  } catch (error) {
    // A service whose key was not printed is of no use.
    withdraw(stateDir);
    await service.stop();
    throw error;
  }
}

function readPort(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_PORT;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new CliError(EXIT.usage, `PORT must be a whole number from 0 to 65535, not "${text}".`);
  }
  return port;
}

export const command = new Command('serve')
  .description('Runs the service on this machine until it is interrupted.')
  .option('--port <port>', 'port to listen on (PORT, 8787)')
  .option('--verbose', 'also write the log to stderr')
  .option('--json', 'print address, playground and key as JSON')
  .action(serve);
