import { readFileSync } from 'node:fs';
import type { R2Bucket } from '@cloudflare/workers-types';
import { filesToLoad, packInUse } from '../../src/platform/onnx/manifest.ts';
import { isIntact, modelKey, modelPath, readManifest, remedyFor } from '../models/store.ts';

/**
 * Copies the model files of the pack in use to the service's storage, under their hashes. Keeps objects that have the
 * right size.
 *
 * @returns keys of the objects that this call wrote
 * @throws if a file is missing or damaged; the message names the command that downloads it
 */
export async function seedModels(bucket: R2Bucket, root: string): Promise<string[]> {
  const pack = packInUse(readManifest(root));
  const written: string[] = [];
  for (const file of filesToLoad(pack)) {
    const key = modelKey(file);
    if ((await bucket.head(key))?.size === file.bytes) continue;
    if (!isIntact(root, file)) {
      throw new Error(`models/${file.path} is missing or damaged. ${remedyFor(pack, [file])}`);
    }
    // Miniflare's proxy does not accept a Buffer.
    await bucket.put(key, new Uint8Array(readFileSync(modelPath(root, file))));
    written.push(key);
  }
  return written;
}
