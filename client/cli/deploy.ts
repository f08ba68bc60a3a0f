import { Command, InvalidArgumentError, Option } from 'commander';
import { JURISDICTIONS, type Jurisdiction } from '../../src/platform/jurisdiction.ts';
import { BUCKET } from '../deploy/config.ts';
import { deploy, rehearse } from '../deploy/deploy.ts';
import { destroy } from '../deploy/destroy.ts';
import { findBucket } from '../deploy/home.ts';
import { instanceName, nameFault, nameIn } from '../deploy/naming.ts';
import { type Ask, askAtTerminal } from '../deploy/questions.ts';
import { endRotation, rotateSigningKey } from '../deploy/secrets.ts';
import { setUpUploads } from '../deploy/uploads.ts';
import { projectDir as root } from '../local/paths.ts';
import { CliError, EXIT } from './run.ts';

interface Options {
  readonly name: string;
  readonly jurisdiction?: Jurisdiction;
  readonly yes?: boolean;
  readonly traces?: boolean;
  readonly dryRun?: boolean;
  readonly uploads?: boolean;
  readonly rotateSigningKey?: boolean;
  readonly endRotation?: boolean;
  readonly destroy?: boolean;
}

async function run(options: Options): Promise<void> {
  try {
    await work(options);
  } catch (error) {
    throw new CliError(EXIT.failed, error instanceof Error ? error.message : String(error));
  }
}

async function work({ name: instance, jurisdiction, traces, yes, ...options }: Options): Promise<void> {
  // A closed pipe must not stop a deployment halfway.
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const deployment = { root, say, instance, jurisdiction, traces };
  if (options.dryRun) return rehearse(deployment);
  if (options.destroy) return destroy(root, instance, say, askAtTerminal);
  if (options.rotateSigningKey) return rotateSigningKey(root, instance, say);
  if (options.endRotation) return endRotation(root, instance, say);
  if (options.uploads) {
    const home = await findBucket(root, nameIn(instance, BUCKET));
    if (!home) throw new Error(`There is no bucket of ${instance}. Deploy first: npm run deploy`);
    return setUpUploads({ root, instance, jurisdiction: home.jurisdiction, say, ask: askAtTerminal });
  }
  const agree: Ask = async () => 'yes';
  return deploy(deployment, yes ? agree : askAtTerminal);
}

function instanceArgument(name: string): string {
  const fault = nameFault(name);
  if (fault) throw new InvalidArgumentError(fault);
  return name;
}

/** Returns an option for an action that replaces the deployment. */
const instead = (flags: string, description: string): Option =>
  new Option(flags, description).conflicts(
    ['dryRun', 'uploads', 'rotateSigningKey', 'endRotation', 'destroy'].filter(
      (name) => name !== flags.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
    ),
  );

export const command = new Command('deploy')
  .description(
    'Creates missing resources on Cloudflare (D1, R2, queues, secrets), migrates, uploads models, deploys, and tests.',
  )
  .addOption(
    new Option('--name <name>', 'instance, after which its Workers and resources are named; ROLLCALL_INSTANCE')
      .argParser(instanceArgument)
      .default(instanceName()),
  )
  .addOption(
    new Option(
      '--jurisdiction <where>',
      'jurisdiction in which a new instance keeps its data; it cannot be changed later',
    ).choices(JURISDICTIONS),
  )
  .option('--yes', 'take over resources of these names without asking')
  .option('--traces', "switch on the platform's traces, which contain addresses of recordings")
  .addOption(instead('--dry-run', 'bundle and check only, offline'))
  .addOption(instead('--uploads', 'set up uploads directly to the bucket, of up to 1 GiB'))
  .addOption(instead('--rotate-signing-key', 'create a new signing key; the previous one is still accepted'))
  .addOption(instead('--end-rotation', 'invalidate everything that the previous signing key signed'))
  .addOption(instead('--destroy', 'delete the instance with all its data; asks for its name'))
  .action(run);
