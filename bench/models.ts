import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir } from '../client/local/paths.ts';
import { modelPath } from '../client/models/store.ts';
import { segmentationFile } from '../src/platform/onnx/manifest.ts';
import { packOfService } from './pipeline.ts';
import { table } from './report.ts';
import { cacheDir, logProgress, sharedPath } from './shared.ts';

type Kind = 'segmentation' | 'powers' | 'embedding';

interface Model {
  readonly name: string;
  readonly kind: Kind;
  readonly path: string;
}

/** Cost of each model in WebAssembly, and the equal error rates of the embedders on the same trials. */
export function measureModels(): string {
  return `### Time and memory

Ten seconds of input, WebAssembly, one thread, each model in a separate Node process: median and fastest of 40 runs,
size of the WebAssembly memory after them (runtime, weights and activations; it starts at 16 MB).

${costTable()}

### Equal error rates

${equalErrorRates()}`;
}

function models(): Model[] {
  const { embedding } = packOfService().pack;
  const { segmentation } = packOfService('community-1').pack;
  const accurate = packOfService().pack.segmentation;
  const own = (name: string, kind: Kind, file: { path: string }): Model => ({
    name,
    kind,
    path: modelPath(projectDir, file as Parameters<typeof modelPath>[1]),
  });
  const beside = (name: string, kind: Kind, ...parts: string[]): Model[] => {
    const path = sharedPath(...parts);
    return path === undefined ? [] : [{ name, kind, path }];
  };
  return [
    ...(accurate.form === 'whole' ? [own(accurate.id, 'segmentation', segmentationFile(accurate))] : []),
    own(
      segmentation.form === 'split' ? `${segmentation.id}, network, 8 bits` : segmentation.id,
      segmentation.form === 'split' ? 'powers' : 'segmentation',
      segmentationFile(segmentation),
    ),
    ...(segmentation.form === 'split' && segmentation.files.whole
      ? [own(`${segmentation.id}, whole, float32`, 'segmentation', segmentation.files.whole)]
      : []),
    ...(segmentation.form === 'split' && segmentation.files.wholeInt8
      ? [own(`${segmentation.id}, whole, 8 bits`, 'segmentation', segmentation.files.wholeInt8)]
      : []),
    ...beside('segmentation-v0', 'segmentation', 'weights', 'segmentation-v0.onnx'),
    ...beside('segmentation-3.0 int8', 'segmentation', 'models', 'segmentation-3.0.int8.onnx'),
    ...(embedding.form === 'split' ? [own(`${embedding.id}, trunk, 8 bits`, 'embedding', embedding.files.trunk)] : []),
    ...beside('embedder-v0, trunk', 'embedding', 'weights', 'embedder-v0-trunk.onnx'),
  ].filter(({ name }, index, all) => all.findIndex((one) => one.name === name) === index);
}

function costTable(): string {
  const rows = models().map(({ name, kind, path }) => {
    logProgress(`cost of ${name}`);
    const script = join(projectDir, 'bench/model-cost.ts');
    const printed = execFileSync(process.execPath, [...process.execArgv, script, path, kind], { encoding: 'utf8' });
    const cost = JSON.parse(printed) as { medianMs: number; fastestMs: number; memoryBytes: number };
    return [
      name,
      (statSync(path).size / 1e6).toFixed(2),
      cost.medianMs.toFixed(1),
      cost.fastestMs.toFixed(1),
      (cost.memoryBytes / 1e6).toFixed(1),
    ];
  });
  return table(['model', 'file, MB', 'median, ms', 'fastest, ms', 'memory, MB'], rows);
}

/** Runs `training/evaluation` with the Python of `ROLLCALL_PYTHON`. */
function equalErrorRates(): string {
  const python = process.env.ROLLCALL_PYTHON;
  const [voices, noise, meetings] = [sharedPath('voices'), sharedPath('noise'), sharedPath('audio', 'meetings')];
  if (!python) return '**Not measured:** `ROLLCALL_PYTHON` names no Python with the packages of `training/evaluation`.';
  if (!voices || !noise || !meetings) return '**Not measured:** `../shared` is not here.';
  const { embedding } = packOfService().pack;
  const { form, files } = embedding;
  const inUse = (form === 'split' ? [files.trunk, files.head] : [files.model]).map((file) =>
    modelPath(projectDir, file),
  );
  const start = process.env.ROLLCALL_CAMPPLUS;
  const trials = join(cacheDir(), 'trials.json');
  const corpora = ['--voices', voices, '--noise', noise, '--meetings', meetings];
  const run = (module: string, ...args: string[]): string => {
    logProgress(`python -m evaluation.${module}`);
    return execFileSync(python, ['-m', `evaluation.${module}`, ...args], {
      cwd: join(projectDir, 'training'),
      env: { ...process.env, OMP_NUM_THREADS: '1' },
      encoding: 'utf8',
    });
  };
  run('trials', ...corpora, '--out', trials, '--seed', '5');
  const printed = run(
    'eer',
    '--trials',
    trials,
    ...corpora,
    ...['--model', `${embedding.id}=${inUse.join('+')}`],
    ...(start ? ['--model', `CAM++=${start}`] : []),
    ...['--floor', 'with', '--cache', join(cacheDir(), 'embeddings')],
  );
  const tables = printed.slice(printed.indexOf('| trials'));
  return `\`training/evaluation\`, trials of seed 5, the same for all: voices held out from training with two clips or
more, clean and degraded (room, noise, telephone band or codec, level), against voices of the same set (hard) and of
any; single-speaker sections of the meeting openings. In percent, in brackets 95 % of 300 resamples of the voices. Both
have the feature floor.
The embedder in use is in 8 bits, CAM++ whole and in floating point.

${tables.trim()}`;
}
