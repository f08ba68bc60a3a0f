import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { Command } from 'commander';
import { RollcallClient } from '../sdk/client.ts';
import { checkAddress } from './arguments.ts';
import { must } from './job.ts';
import { readLogin, removeLogin, saveLogin } from './login-file.ts';
import { CliError, EXIT, note } from './run.ts';
import { checkKey } from './target.ts';

async function login(address: string | undefined, { logout }: { logout?: boolean }): Promise<void> {
  if (logout) {
    note(removeLogin() ? 'Logged out.' : 'There was no login.');
    return;
  }
  if (address === undefined) {
    const url = readLogin()?.url;
    if (url === undefined) throw new CliError(EXIT.usage, 'Give the address of the service: rollcall login ADDRESS');
    note(`Logged in to ${url}.`);
    return;
  }
  checkAddress('ADDRESS', address);
  const key = checkKey('The key', await askForKey());
  must(await new RollcallClient({ url: address, key }).test());
  const path = saveLogin({ url: address, key });
  note(`Logged in to ${address}. The key is in ${path}, which only you can read.`);
}

/** Reads the key from the terminal without echo, or from stdin: other users could see an argument. */
async function askForKey(): Promise<string> {
  const { stdin, stderr } = process;
  if (stdin.isTTY) stderr.write('key: ');
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: stdin.isTTY });
  for await (const line of lines) {
    if (stdin.isTTY) stderr.write('\n');
    return line;
  }
  throw new CliError(EXIT.usage, 'stdin contained no key.');
}

export const command = new Command('login')
  .description('Stores the address and a key of a service for later commands; reads the key from stdin.')
  .argument(
    '[address]',
    'address of the service, for example https://rollcall.example.workers.dev; without it, shows the login',
  )
  .option('--logout', 'delete the stored login')
  .action(login);
