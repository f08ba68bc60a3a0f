import { createHash } from 'node:crypto';
import type { EmbeddingPort, SegmentationPort, TrunkOutput } from '../../src/diarization/model-ports.ts';
import type { AnalysisPorts } from '../../src/diarization/shard.ts';

/**
 * Caches the results of models, so that a test that analyses a recording several times runs the networks once per input.
 */
export const rememberingModels = <Ports extends AnalysisPorts>(ports: Ports): Ports => ({
  ...ports,
  segmentation: rememberingSegmentation(ports.segmentation),
  secondSegmentation: ports.secondSegmentation && rememberingSegmentation(ports.secondSegmentation),
  embedding: rememberingEmbedding(ports.embedding),
});

function rememberingSegmentation(port: SegmentationPort): SegmentationPort {
  const scores = memoryOf(copied);
  return port.form === 'whole'
    ? { ...port, run: (window: Float32Array) => scores(window, () => port.run(window)) }
    : { ...port, run: (powers: Float32Array, frames: number) => scores(powers, () => port.run(powers, frames)) };
}

function rememberingEmbedding(port: EmbeddingPort): EmbeddingPort {
  const embeddings = memoryOf(copied);
  if (port.form === 'whole')
    return { ...port, embed: (feats, frames) => embeddings(feats, () => port.embed(feats, frames)) };
  const outputs = memoryOf((output: TrunkOutput): TrunkOutput => ({ ...output, frames: output.frames.slice() }));
  return {
    ...port,
    trunk: (feats, frames) => outputs(feats, () => port.trunk(feats, frames)),
    head: (pooled, batch) => embeddings(pooled, () => port.head(pooled, batch)),
  };
}

const copied = (values: Float32Array): Float32Array => values.slice();

/** Results by the bytes of their input. Callers get copies, whose buffers they may detach. */
function memoryOf<Result>(copy: (result: Result) => Result) {
  const results = new Map<string, Promise<Result>>();
  return async (input: Float32Array, compute: () => Promise<Result>): Promise<Result> => {
    const bytes = new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    const key = createHash('sha1').update(bytes).digest('base64');
    const result = results.get(key) ?? compute().then(copy);
    results.set(key, result);
    return copy(await result);
  };
}
