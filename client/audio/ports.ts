import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AudioPorts } from '../../src/audio/recording.ts';
import { createDecoders, type Decoders } from '../../src/platform/wasm/codecs.ts';
import { createDsp, type Dsp } from '../../src/platform/wasm/dsp.ts';
import { projectDir } from '../local/paths.ts';

let dsp: Dsp | undefined;
let decoders: Decoders | undefined;

/** Compiles the WebAssembly module in a file. */
export const moduleAt = (path: string): WebAssembly.Module => new WebAssembly.Module(readFileSync(path));

/** Returns the service's signal processing, in this process. */
export function nodeDsp(): Dsp {
  dsp ??= createDsp(moduleAt(join(projectDir, 'wasm/dsp/dsp.wasm')));
  return dsp;
}

/** Returns the service's decoders and resampler, in this process. */
export function nodeAudio(): AudioPorts {
  decoders ??= createDecoders(moduleAt(join(projectDir, 'wasm/codecs/codecs.wasm')));
  return { decoder: decoders, resampler: nodeDsp().resampler };
}

/** Returns the WebAssembly memory of this process's decoders, bytes. */
export function decoderBytes(): number {
  return decoders?.memoryBytes() ?? 0;
}
