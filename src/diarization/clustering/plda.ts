/**
 * Two-covariance PLDA of an embedder (Brümmer and de Villiers, 2010), fitted by `training/calibration/plda.py`: in its
 * space the covariance within a speaker is the identity and that between speakers is diagonal.
 */
export interface Plda {
  /** Id of the embedder that it was fitted for. */
  readonly embedding: string;
  /** Dimension of the embeddings. */
  readonly inputs: number;
  /** Dimension of the space, at most `inputs`. */
  readonly outputs: number;
  /** [inputs] subtracted from a unit embedding before it is scaled to length √inputs */
  readonly mean: Float64Array;
  /** [inputs] subtracted after that */
  readonly offset: Float64Array;
  /** [outputs, inputs] */
  readonly transform: Float64Array;
  /** [outputs] between-speaker variances, largest first */
  readonly phi: Float64Array;
}

/**
 * Reads the JSON document that `plda.py` writes.
 * @throws for any other document: a damaged model file must not be used
 */
export function parsePlda(json: unknown): Plda {
  if (typeof json !== 'object' || json === null) throw new Error('the PLDA is no object');
  const { embedding, mean, offset, transform, phi } = json as Record<string, unknown>;
  if (typeof embedding !== 'string') throw new Error('the PLDA names no embedder');
  const outputs = Array.isArray(phi) ? phi.length : 0;
  const inputs = Array.isArray(mean) ? mean.length : 0;
  if (!Array.isArray(transform) || transform.length !== outputs) throw new Error('the PLDA has no transform');
  return {
    embedding,
    inputs,
    outputs,
    mean: numbers(mean, inputs, 'mean'),
    offset: numbers(offset, inputs, 'offset'),
    transform: numbers(transform.flat(), inputs * outputs, 'transform'),
    phi: numbers(phi, outputs, 'phi'),
  };
}

function numbers(value: unknown, length: number, name: string): Float64Array {
  const isRight = Array.isArray(value) && value.length === length && length > 0 && value.every(Number.isFinite);
  if (!isRight) throw new Error(`the PLDA's ${name} is not ${length} numbers`);
  return Float64Array.from(value as number[]);
}

/** Unit embeddings [count, inputs] → [count, outputs] in the PLDA space. */
export function project(plda: Plda, embeddings: Float32Array, count: number): Float64Array {
  const { inputs, outputs, mean, offset, transform, phi } = plda;
  const out = new Float64Array(count * phi.length);
  const vector = new Float64Array(inputs);
  for (let row = 0; row < count; row++) {
    let squares = 0;
    for (let d = 0; d < inputs; d++) {
      const value = embeddings[row * inputs + d] - mean[d];
      vector[d] = value;
      squares += value * value;
    }
    const scale = Math.sqrt(inputs / Math.max(squares, 1e-12));
    for (let d = 0; d < inputs; d++) vector[d] = vector[d] * scale - offset[d];
    for (let k = 0; k < outputs; k++) {
      let sum = 0;
      for (let d = 0; d < inputs; d++) sum += transform[k * inputs + d] * vector[d];
      out[row * outputs + k] = sum;
    }
  }
  return out;
}
