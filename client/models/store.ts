import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ModelFile, type ModelManifest, type ModelPack, parseManifest } from '../../src/platform/onnx/manifest.ts';
import { LocalStateError } from '../local/paths.ts';

const manifestPath = (root: string): string => join(root, 'models', 'manifest.json');

/** @throws LocalStateError for a faulty manifest; the message names the entry */
export function readManifest(root: string): ModelManifest {
  const path = manifestPath(root);
  const text = readFileSync(path, 'utf8');
  try {
    return parseManifest(JSON.parse(text));
  } catch (error) {
    const { message } = error as Error;
    // Messages about entries already contain the path.
    throw new LocalStateError(error instanceof SyntaxError ? `${path} is not JSON: ${message}.` : `${message}.`);
  }
}

/** Returns the advice for missing or damaged files of a pack. */
export function remedyFor(pack: ModelPack, files: readonly ModelFile[]): string {
  return files.every(({ origin }) => origin)
    ? `Get ${files.length === 1 ? 'it' : 'them'} with: npm run models -- pull ${pack.name}`
    : 'Check out the repository again.';
}

/** Path of a model file in a checkout. */
export function modelPath(root: string, file: ModelFile): string {
  return join(root, 'models', file.path);
}

/** Key of a model in the service's storage. */
export function modelKey(file: ModelFile): string {
  return `models/${file.sha256}`;
}

export function isIntact(root: string, file: ModelFile): boolean {
  return fileState(root, file) === 'intact';
}

/** `intact` if the file has the size and hash of the manifest. */
export function fileState(root: string, file: ModelFile): 'intact' | 'missing' | 'damaged' {
  const path = modelPath(root, file);
  if (!existsSync(path)) return 'missing';
  if (statSync(path).size !== file.bytes) return 'damaged';
  const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
  return sha256 === file.sha256 ? 'intact' : 'damaged';
}

/** Selects the pack of the service; changes nothing else in the manifest. */
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
