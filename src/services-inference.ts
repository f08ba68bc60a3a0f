import dspModule from '../wasm/dsp/dsp.wasm';
import type { ResamplerPort } from './audio/audio-ports.ts';
import type { JobPorts } from './jobs/job-ports.ts';
import { loadEngine, loadPlda } from './platform/engine.ts';
import { identificationOf } from './platform/models-in-use.ts';
import { createDsp, type Dsp } from './platform/wasm/dsp.ts';

let shared: Dsp | undefined;
function sharedDsp(): Dsp {
  shared ??= createDsp(dspModule);
  return shared;
}

/** Created once per isolate, on first use. */
export const resampler = (): ResamplerPort => sharedDsp().resampler;

/**
 * Models from the bucket, loaded once per isolate on first use.
 *
 * @param pause yields to other work between model runs; the first call of an isolate sets it
 */
export const inference = (
  bucket: R2Bucket,
  pause: () => Promise<void>,
): Pick<JobPorts, 'engine' | 'plda' | 'identification'> => ({
  engine: (setting) => loadEngine(bucket, sharedDsp(), setting, pause),
  plda: (embeddingId) => loadPlda(bucket, embeddingId),
  identification: identificationOf,
});
