import { Command } from 'commander';
import { allFiles, canFollowStreams, type ModelPack } from '../../src/platform/onnx/manifest.ts';
import { projectDir } from '../local/paths.ts';
import { pullFile } from '../models/pull.ts';
import { fileState, readManifest, remedyFor, switchPack } from '../models/store.ts';
import { checkAddress } from './arguments.ts';
import { printLines } from './print.ts';
import { Progress } from './progress.ts';
import { CliError, EXIT, note } from './run.ts';

const root = process.env.ROLLCALL_MODELS_ROOT ?? projectDir;

async function list({ json }: { json?: boolean }): Promise<void> {
  const manifest = readManifest(root);
  if (json) {
    const packs = [...manifest.packs.values()].map((pack) => ({
      name: pack.name,
      inUse: pack.name === manifest.use,
      complete: allFiles(pack).every((file) => fileState(root, file) === 'intact'),
      models: [pack.segmentation, pack.embedding].map(({ id, licence, source }) => ({ id, licence, source })),
    }));
    return printLines([JSON.stringify(packs)]);
  }
  const lines = [...manifest.packs.values()].flatMap((pack) => {
    const mark = pack.name === manifest.use ? '*' : ' ';
    const bad = allFiles(pack).filter((file) => fileState(root, file) !== 'intact');
    const slots = [pack.segmentation, pack.embedding].map(
      ({ id, licence, source }) => `    ${id}  ${licence}  ${source}`,
    );
    return [`${mark} ${pack.name}  ${bad.length === 0 ? 'ready' : `not complete. ${remedyFor(pack, bad)}`}`, ...slots];
  });
  await printLines(lines);
}

async function pull(name: string): Promise<void> {
  const pack = findPack(name);
  const mirror = process.env.ROLLCALL_MODELS_MIRROR;
  if (mirror) checkAddress('ROLLCALL_MODELS_MIRROR', mirror);
  for (const file of allFiles(pack)) {
    const progress = new Progress();
    const outcome = await pullFile(file, {
      root,
      mirror,
      onProgress: (received, total) => {
        progress.begin(file.path, total);
        progress.update(received);
      },
    });
    progress.end();
    if ('message' in outcome) {
      throw new CliError(outcome.kind === 'unreachable' ? EXIT.unreachable : EXIT.failed, outcome.message);
    }
    await printLines([`${file.path}  ${outcome.kind === 'present' ? 'already present' : 'pulled and verified'}`]);
  }
  if (readManifest(root).use !== name) note(`Switch to it with: npm run models -- use ${name}`);
}

/** Checks size and SHA-256 of every file of a pack; without a name, of all packs that have at least one file. */
async function verify(name: string | undefined): Promise<void> {
  const manifest = readManifest(root);
  const packs = name === undefined ? [...manifest.packs.values()] : [findPack(name)];
  const lines: string[] = [];
  let bad = 0;
  for (const pack of packs) {
    const states = allFiles(pack).map((file) => ({ file, state: fileState(root, file) }));
    const absent = states.every(({ state }) => state === 'missing');
    if (absent && name === undefined && pack.name !== manifest.use) {
      lines.push(`${pack.name}  not pulled`);
      continue;
    }
    for (const { file, state } of states) {
      lines.push(`${pack.name}  ${file.path}  ${state}`);
      if (state !== 'intact') bad++;
    }
  }
  await printLines(lines);
  if (bad > 0) throw new CliError(EXIT.failed, `${bad} ${bad === 1 ? 'file is' : 'files are'} missing or damaged.`);
}

function use(name: string): void {
  const pack = findPack(name);
  const bad = allFiles(pack).filter((file) => fileState(root, file) !== 'intact');
  if (bad.length > 0) throw new CliError(EXIT.failed, `${name} is not complete. ${remedyFor(pack, bad)}`);
  switchPack(root, name);
  note(`${name} is in use from the next start or deployment.`);
  if (!canFollowStreams(pack)) note('It is too slow for live streams: the service refuses them while it is in use.');
}

function findPack(name: string): ModelPack {
  const { packs } = readManifest(root);
  const pack = packs.get(name);
  if (!pack)
    throw new CliError(EXIT.usage, `There is no pack ${name}. The packs are: ${[...packs.keys()].join(', ')}.`);
  return pack;
}

export const command = new Command('models').description('Lists, downloads, verifies and chooses model packs.');
command
  .command('list')
  .description('show the packs; * marks the one in use')
  .option('--json', 'print JSON')
  .action(list);
command
  .command('pull')
  .argument('<name>')
  .description('download a pack from its public addresses and verify it')
  .action(pull);
command.command('verify').argument('[name]').description('check size and SHA-256 of the local files').action(verify);
command.command('use').argument('<pack>').description('use this pack from the next start').action(use);
