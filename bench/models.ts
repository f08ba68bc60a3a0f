import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir } from '../client/local/paths.ts';
import { modelPath } from '../client/models/store.ts';
import { type ModelFile, type SegmentationEntry, segmentationsOf } from '../src/platform/onnx/manifest.ts';
import { packOfService } from './pipeline.ts';
import { table } from './report.ts';
import { cacheDir, logProgress, sharedPath } from './shared.ts';

/** Inputs of `model-cost.ts`. */
type Kind = 'segmentation' | 'trunk' | 'segmentation-kernel' | 'powers-kernel' | 'trunk-kernel';

interface Model {
  readonly name: string;
  readonly kind: Kind;
  readonly path: string;
}

/** Cost of each model in WebAssembly, and the equal error rates of the embedders on the same trials. */
export function measureModels(): string {
  return `### Time and memory

Ten seconds of input, WebAssembly, one thread, each model in a separate Node process: median and fastest of 40 runs,
size of the WebAssembly memory after them (weights and activations; that of ONNX Runtime starts at 16 MB).

${costTable()}

### Equal error rates

${equalErrorRates()}`;
}

const own = (name: string, kind: Kind, file: ModelFile | undefined): Model[] =>
  file === undefined ? [] : [{ name, kind, path: modelPath(projectDir, file) }];

/** Every form of a segmentation. */
function formsOf(entry: SegmentationEntry): Model[] {
  const { id } = entry;
  switch (entry.form) {
    case 'kernel':
      return [
        ...own(`${id}, kernel`, 'segmentation-kernel', entry.files.weights),
        ...own(`${id}, ONNX`, 'segmentation', entry.files.model),
      ];
    case 'split':
      return [
        ...own(`${id}, kernel`, 'powers-kernel', entry.files.weights),
        ...own(`${id}, whole, float32`, 'segmentation', entry.files.whole),
        ...own(`${id}, whole, 8 bits`, 'segmentation', entry.files.wholeInt8),
      ];
    case 'whole':
      return own(id, 'segmentation', entry.files.model);
  }
}

/** The models of the pack in use, and the published 8-bit form of segmentation-3.0. */
function models(): Model[] {
  const { pack } = packOfService();
  const { id, form, files } = pack.embedding;
  const trunks =
    form === 'kernel'
      ? [
          ...own(`${id}, trunk, kernel`, 'trunk-kernel', files.weights),
          ...own(`${id}, trunk, ONNX`, 'trunk', files.trunk),
        ]
      : [];
  const int8 = sharedPath('models', 'segmentation-3.0.int8.onnx');
  return [
    ...segmentationsOf(pack).flatMap(formsOf),
    ...(int8 === undefined ? [] : [{ name: 'segmentation-3.0 int8', kind: 'segmentation', path: int8 } as const]),
    ...trunks,
  ];
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
  const inUse = (form === 'kernel' ? [files.trunk, files.head] : [files.model]).map((file) =>
    modelPath(projectDir, file),
  );
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
    ...['--floor', 'with', '--cache', join(cacheDir(), 'embeddings')],
  );
  const tables = printed.slice(printed.indexOf('| trials'));
  return `\`training/evaluation\`, trials of seed 5, the same for all: voices held out from training with two clips or
more, clean and degraded (room, noise, telephone band or codec, level), against voices of the same set (hard) and of
any; single-speaker sections of the meeting openings. In percent, in brackets 95 % of 300 resamples of the voices. With
the feature floor and the ONNX files in floating point.

${tables.trim()}`;
}
