import type { Command } from 'commander';

/** A subcommand of `rollcall`. */
export interface Subcommand {
  readonly name: string;
  /** One line in the overview. */
  readonly description: string;
  /** Whether the overview omits it. */
  readonly hidden: boolean;
  /** Imports its module. */
  load(): Promise<Command>;
}

const subcommand = (
  name: string,
  description: string,
  load: () => Promise<{ readonly command: Command }>,
  hidden = false,
): Subcommand => ({ name, description, hidden, load: async () => (await load()).command });

const transcribe = async () => ({ command: (await import('./diarize.ts')).transcribeCommand });

export const COMMANDS: readonly Subcommand[] = [
  subcommand('diarize', 'who spoke when in recordings', () => import('./diarize.ts')),
  subcommand('identify', 'when known people spoke in recordings', () => import('./identify.ts')),
  subcommand('voiceprint', "a person's voiceprint, from a recording", () => import('./voiceprint.ts')),
  subcommand('transcribe', 'who said what', transcribe),
  subcommand('live', 'who is speaking, in real time', () => import('./live.ts')),
  subcommand('serve', 'run the service on this machine', () => import('./start.ts')),
  subcommand('login', 'store the address and a key of a service', () => import('./login.ts')),
  subcommand('jobs', 'list, get, cancel, delete jobs', () => import('./jobs.ts')),
  subcommand('usage', 'billed usage of the account', () => import('./usage.ts')),
  subcommand('keys', 'API keys of the local service, or with --remote of the deployed one', () => import('./key.ts')),
  subcommand('account', 'accounts of the local or the deployed service', () => import('./account.ts')),
  subcommand('models', 'model packs: list, pull, verify, use', () => import('./models.ts')),
  subcommand('asr', 'run a transcription engine on this machine', () => import('./asr.ts')),
  subcommand('deploy', 'put the service on your Cloudflare account', () => import('./deploy.ts')),
  subcommand('completion', 'completion for bash, zsh or fish', () => import('./completion.ts')),
  subcommand('kept-service', 'internal, used by other commands', () => import('./kept-service.ts'), true),
];
