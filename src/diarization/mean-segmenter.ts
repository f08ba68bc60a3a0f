import { release } from '../audio/memory.ts';
import type { SegmentationInfo } from './model-ports.ts';
import { buildPowerset, marginals, type Powerset, type Segmenter } from './segmenter.ts';

/** What the analysis needs of a segmentation, of one model or of two. */
export interface WindowSegmenter {
  readonly info: SegmentationInfo;
  run(window: Float32Array, startSample: number): Promise<Float32Array>;
  close(): void;
}

/**
 * The mean of two segmentation models. Two networks that were trained differently make different errors, so that their
 * mean misses less than either. The numbers that a model gives its local speakers are arbitrary in every window: those
 * of the second model are permuted so that their activity differs least from that of the first.
 */
export class MeanSegmenter implements WindowSegmenter {
  readonly info: SegmentationInfo;
  readonly #powerset: Powerset;
  readonly #permutations: readonly Permutation[];

  /** @throws if the models have different windows or powersets */
  constructor(
    private readonly first: Segmenter,
    private readonly second: Segmenter,
  ) {
    const [a, b] = [first.info, second.info];
    if (a.windowSamples !== b.windowSamples) throw new Error(`${a.id} and ${b.id} have windows of different lengths`);
    if (a.maxLocalSpeakers !== b.maxLocalSpeakers || a.maxSimultaneous !== b.maxSimultaneous)
      throw new Error(`${a.id} and ${b.id} have different powersets`);
    this.info = { ...a, id: `${a.id}+${b.id}` };
    this.#powerset = buildPowerset(a.maxLocalSpeakers, a.maxSimultaneous);
    this.#permutations = permutationsOf(this.#powerset);
  }

  /** @returns log-probabilities [frames of the first model, classes]; the caller owns the array */
  async run(window: Float32Array, startSample: number): Promise<Float32Array> {
    const mean = await this.first.run(window, startSample);
    const scores = await this.second.run(window, startSample);
    const { classes } = this.#powerset;
    for (let index = 0; index < mean.length; index++) mean[index] = Math.exp(mean[index]);
    for (let index = 0; index < scores.length; index++) scores[index] = Math.exp(scores[index]);
    const other = resampled(scores, this.second.info, this.first.info, mean.length / classes, classes);
    release(scores);
    const { classOf } = bestPermutation(mean, other, this.#powerset, this.#permutations);
    for (let at = 0; at < mean.length; at += classes) {
      for (let index = 0; index < classes; index++) {
        mean[at + index] = Math.log((mean[at + index] + other[at + classOf[index]]) / 2);
      }
    }
    return mean;
  }

  close(): void {
    this.first.close();
    this.second.close();
  }
}

/** One assignment of the second model's local speakers to those of the first. */
interface Permutation {
  /** [speakers] the second model's local speaker for each of the first */
  readonly speakerOf: readonly number[];
  /** [classes] the second model's class for each of the first */
  readonly classOf: readonly number[];
}

function permutationsOf({ speakers, classes, mapping }: Powerset): Permutation[] {
  const sets = Array.from({ length: classes }, (_, index) =>
    mapping.subarray(index * speakers, (index + 1) * speakers),
  );
  return orders(speakers).map((speakerOf) => ({
    speakerOf,
    classOf: sets.map((set) => sets.findIndex((other) => speakerOf.every((from, to) => other[from] === set[to]))),
  }));
}

/** All orders of the numbers below `count`. */
function orders(count: number): number[][] {
  if (count === 0) return [[]];
  return orders(count - 1).flatMap((order) =>
    Array.from({ length: count }, (_, at) => [...order.slice(0, at), count - 1, ...order.slice(at)]),
  );
}

/**
 * Probabilities [*, classes] at the frame centres of another model, interpolated linearly: [frames, classes]. Before
 * the first and after the last frame they are constant.
 */
function resampled(
  probabilities: Float32Array,
  from: SegmentationInfo,
  to: SegmentationInfo,
  frames: number,
  classes: number,
): Float32Array {
  const out = new Float32Array(frames * classes);
  const last = probabilities.length / classes - 1;
  for (let frame = 0; frame < frames; frame++) {
    const centre = frame * to.frameShiftSamples + to.frameSizeSamples / 2;
    const position = Math.min(last, Math.max(0, (centre - from.frameSizeSamples / 2) / from.frameShiftSamples));
    const left = Math.floor(position);
    const right = Math.min(last, left + 1);
    const share = position - left;
    for (let index = 0; index < classes; index++) {
      out[frame * classes + index] =
        (1 - share) * probabilities[left * classes + index] + share * probabilities[right * classes + index];
    }
  }
  return out;
}

/** The permutation with the smallest squared difference of the speakers' activity; of equal ones the first. */
function bestPermutation(
  first: Float32Array,
  second: Float32Array,
  powerset: Powerset,
  permutations: readonly Permutation[],
): Permutation {
  const { speakers } = powerset;
  const [a, b] = [marginals(first, powerset), marginals(second, powerset)];
  // The squares are the same for all permutations: only the products decide.
  const products = new Float64Array(speakers * speakers);
  for (let at = 0; at < a.length; at += speakers) {
    for (let s = 0; s < speakers; s++) {
      for (let other = 0; other < speakers; other++) products[s * speakers + other] += a[at + s] * b[at + other];
    }
  }
  const agreement = ({ speakerOf }: Permutation) =>
    speakerOf.reduce((sum, other, speaker) => sum + products[speaker * speakers + other], 0);
  return permutations.reduce((best, one) => (agreement(one) > agreement(best) ? one : best));
}
