import { readFileSync } from 'node:fs';
import type { WranglerResult } from './wrangler.ts';

/** A Cloudflare account in memory that answers wrangler's commands and records them. */
export class FakeAccount {
  readonly calls: string[][] = [];
  readonly databases = new Set<string>();
  /** Names: `bucket`, or `bucket in eu`. */
  readonly buckets = new Set<string>();
  readonly queues = new Set<string>();
  readonly objects = new Set<string>();
  readonly rules = new Set<string>();
  readonly workers = new Map<string, Record<string, string>>();
  /** The configuration file of the last deployment, by Worker. */
  readonly configs = new Map<string, string>();
  keys = 0;

  /** Calls that change the account, as text without local paths. */
  get changes(): string[] {
    const reads = / (info|list)\b|^whoami|^d1 execute/;
    return this.calls.map((args) => args.join(' ')).filter((call) => !reads.test(call));
  }

  wrangler(args: readonly string[], input = ''): WranglerResult {
    this.calls.push(args.map((arg) => (arg.startsWith('/') ? 'FILE' : arg)));
    const failure = { code: 1, stdout: '', stderr: `Worker "${args.at(-1)}" not found.` };
    const stdout = this.#answer(args, input);
    return stdout === undefined ? failure : { code: 0, stdout, stderr: '' };
  }

  /** @returns undefined if the command fails */
  #answer(args: readonly string[], input: string): string | undefined {
    const option = (name: string) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
    const where = option('--jurisdiction');
    const bucket = where ? `${args[3]} in ${where}` : `${args[3]}`;
    const verb = args.slice(0, 3).join(' ');
    if (verb === 'd1 list --json')
      return JSON.stringify([...this.databases].map((name) => ({ name, uuid: `id of ${name}` })));
    if (verb.startsWith('d1 create')) return done(this.databases.add(String(args[2])));
    if (verb.startsWith('d1 delete')) return this.#deleteDatabase(String(args[2]), String(option('--config')));
    if (verb === 'd1 migrations apply') return '';
    if (verb.startsWith('d1 execute')) return JSON.stringify([{ results: this.#rows(String(option('--command'))) }]);
    if (verb === 'r2 bucket info') return ifFound(this.buckets.has(bucket));
    if (verb === 'r2 bucket create') return done(this.buckets.add(bucket));
    if (verb === 'r2 bucket delete') return this.objects.size > 0 ? undefined : ifFound(this.buckets.delete(bucket));
    if (verb === 'r2 object put') return done(this.objects.add(String(args[3])));
    if (verb === 'r2 object delete') return done(this.objects.delete(String(args[3])));
    if (verb === 'r2 bucket lifecycle')
      return args[3] === 'list' ? [...this.rules].map((name) => `name: ${name}\n`).join('') : this.#addRule(args);
    if (verb.startsWith('queues info')) return ifFound(this.queues.has(String(args[2])));
    if (verb.startsWith('queues create')) return done(this.queues.add(String(args[2])));
    if (verb.startsWith('queues delete')) return ifFound(this.queues.delete(String(args[2])));
    if (verb.startsWith('secret list')) return this.#secretNames(String(option('--name')));
    if (verb.startsWith('secret bulk')) return this.#putSecrets(String(option('--name')), input);
    if (verb.startsWith('delete ')) return ifFound(this.workers.delete(String(args[1])));
    if (verb === 'whoami --json') return JSON.stringify({ accounts: [{ id: 'account' }] });
    if (args[0] === 'deploy') return this.#deploy(String(option('--config')), option('--secrets-file'));
    throw new Error(`unknown to the fake: wrangler ${args.join(' ')}`);
  }

  /** Reads the id from the configuration, like wrangler. */
  #deleteDatabase(name: string, config: string): string | undefined {
    const isListed = readFileSync(config, 'utf8').includes(`database_id = "id of ${name}"`);
    return isListed ? ifFound(this.databases.delete(name)) : undefined;
  }

  #addRule(args: readonly string[]): string {
    this.rules.add(String(args[5]));
    return '';
  }

  #rows(sql: string): object[] {
    if (sql.includes('COUNT(*) AS keys')) return [{ keys: this.keys }];
    if (sql.startsWith('INSERT INTO api_keys')) this.keys++;
    return sql.trimStart().startsWith('SELECT') ? [{ id: 'id' }] : [];
  }

  #secretNames(worker: string): string | undefined {
    const secrets = this.workers.get(worker);
    return secrets && JSON.stringify(Object.keys(secrets).map((name) => ({ name, type: 'secret_text' })));
  }

  #putSecrets(worker: string, json: string): string | undefined {
    const secrets = this.workers.get(worker);
    if (!secrets) return undefined;
    for (const [name, value] of Object.entries(JSON.parse(json) as Record<string, string | null>)) {
      if (value === null) delete secrets[name];
      else secrets[name] = value;
    }
    return '';
  }

  #deploy(config: string, secretsFile: string | undefined): string | undefined {
    const text = readFileSync(config, 'utf8');
    const name = String(/^name = "(.+)"$/m.exec(text)?.[1]);
    this.configs.set(name, text);
    // A Worker can only be bound to Durable Objects of a deployed Worker.
    for (const [, owner] of text.matchAll(/^script_name = "(.+)"$/gm))
      if (!this.workers.has(String(owner))) return undefined;
    const secrets = secretsFile ? JSON.parse(readFileSync(secretsFile, 'utf8')) : {};
    this.workers.set(name, { ...this.workers.get(name), ...secrets });
    const address = text.includes('\nworkers_dev = false\n') ? '' : `  https://${name}.acme.workers.dev\n`;
    return `Uploaded ${name} (3.21 sec)\nDeployed ${name} triggers (1.23 sec)\n${address}`;
  }
}

const done = (_result: unknown): string => '';
const ifFound = (isFound: boolean): string | undefined => (isFound ? '' : undefined);
