import type { Command } from 'commander';

/** A subcommand of `rollcall`. */
export interface Subcommand {
  readonly name: string;
  /** One line of the overview. */
  readonly description: string;
  /** Left out of the overview. */
  readonly hidden?: boolean;
  /** Imports its module. */
  load(): Promise<Command>;
}

export const COMMANDS: readonly Subcommand[] = [
  {
    name: 'diarize',
    description: 'who spoke when in recordings',
    load: async () => (await import('./diarize.ts')).command,
  },
  {
    name: 'identify',
    description: 'when known people spoke in recordings',
    load: async () => (await import('./identify.ts')).command,
  },
  {
    name: 'voiceprint',
    description: "a person's voiceprint, from a recording",
    load: async () => (await import('./voiceprint.ts')).command,
  },
  {
    name: 'transcribe',
    description: 'who said what',
    load: async () => (await import('./diarize.ts')).transcribeCommand,
  },
  {
    name: 'live',
    description: 'who is speaking, in real time',
    load: async () => (await import('./live.ts')).command,
  },
  {
    name: 'serve',
    description: 'run the service on this machine',
    load: async () => (await import('./start.ts')).command,
  },
  {
    name: 'login',
    description: 'store the address and a key of a service',
    load: async () => (await import('./login.ts')).command,
  },
  {
    name: 'jobs',
    description: 'list, get, cancel, delete jobs',
    load: async () => (await import('./jobs.ts')).command,
  },
  {
    name: 'usage',
    description: 'what the account was billed',
    load: async () => (await import('./usage.ts')).command,
  },
  {
    name: 'keys',
    description: 'API keys of the local service, or with --remote of the deployed one',
    load: async () => (await import('./key.ts')).command,
  },
  {
    name: 'account',
    description: 'accounts of the local or the deployed service',
    load: async () => (await import('./account.ts')).command,
  },
  {
    name: 'models',
    description: 'model packs: list, pull, verify, use',
    load: async () => (await import('./models.ts')).command,
  },
  {
    name: 'asr',
    description: 'run a transcription engine on this machine',
    load: async () => (await import('./asr.ts')).command,
  },
  {
    name: 'deploy',
    description: 'put the service on your Cloudflare account',
    load: async () => (await import('./deploy.ts')).command,
  },
  {
    name: 'completion',
    description: 'completion for bash, zsh or fish',
    load: async () => (await import('./completion.ts')).command,
  },
  {
    name: 'kept-service',
    description: 'used by other commands',
    hidden: true,
    load: async () => (await import('./kept-service.ts')).command,
  },
];
