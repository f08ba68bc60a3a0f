import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ModelFile, type ModelManifest, type ModelPack, parseManifest } from '../../src/platform/onnx/manifest.ts';
import { LocalStateError } from '../local/paths.ts';

const manifestPath = (root: string): string => join(root, 'models', 'manifest.json');

/** @throws LocalStateError when the manifest is broken, naming the faulty entry */
export function readManifest(root: string): ModelManifest {
  const path = manifestPath(root);
  const text = readFileSync(path, 'utf8');
  try {
    return parseManifest(JSON.parse(text));
  } catch (error) {
    const { message } = error as Error;
    // Faults of entries name the file by themselves.
    throw new LocalStateError(error instanceof SyntaxError ? `${path} is no JSON: ${message}.` : `${message}.`);
  }
}

/** How files of a pack can be had that are missing or damaged. */
export function remedyFor(pack: ModelPack, files: readonly ModelFile[]): string {
  return files.every(({ origin }) => origin)
    ? `Get ${files.length === 1 ? 'it' : 'them'} with: npm run models -- pull ${pack.name}`
    : 'Check out the repository again.';
}

/** Where a model file lies in a checkout. */
export function modelPath(root: string, file: ModelFile): string {
  return join(root, 'models', file.path);
}

/** Key under which the service finds a model in its storage. */
export function modelKey(file: ModelFile): string {
  return `models/${file.sha256}`;
}

/** Whether the file is here, whole and the one that the manifest names. */
export function isIntact(root: string, file: ModelFile): boolean {
  return fileState(root, file) === 'intact';
}

/** Whether the file is here and has the size and the hash that the manifest names. */
export function fileState(root: string, file: ModelFile): 'intact' | 'missing' | 'damaged' {
  const path = modelPath(root, file);
  if (!existsSync(path)) return 'missing';
  if (statSync(path).size !== file.bytes) return 'damaged';
  const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
  return sha256 === file.sha256 ? 'intact' : 'damaged';
}

/** Makes a pack the one that the service runs. Everything else in the manifest stays as it is written. */
export function switchPack(root: string, name: string): void {
  const path = manifestPath(root);
  const text = readFileSync(path, 'utf8').replace(
    /("use"\s*:\s*)"[^"]*"/,
    (_, head: string) => head + JSON.stringify(name),
  );
  parseManifest(JSON.parse(text));
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
