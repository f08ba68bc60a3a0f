/**
 * Weights of the logistic regression that tells whether two clusters are one person. Fitted by `training/calibration` on
 * generated conversations; the order and the meaning of the features are those of `clustering.py` there.
 */
export interface MergeTestParameters {
  /** Mean cosine between the items of the one and those of the other. */
  readonly cross: number;
  /** Mean cosine between different items of the cluster with less speech. */
  readonly withinSmaller: number;
  readonly withinLarger: number;
  /** Logarithm of the seconds of speech, plus 0.1, of the cluster with less… */
  readonly logSmallerSeconds: number;
  /** …and of the one with more. */
  readonly logLargerSeconds: number;
  /** Share of the smaller cluster's windows in which both occur: there, segmentation heard two people. */
  readonly sharedWindows: number;
  readonly offset: number;
  /** Log-odds from which two clusters are taken for one person. */
  readonly minLogOdds: number;
  /** Clusters with less speech are merged untested: their embeddings say too little. */
  readonly minTestedSeconds: number;
}

/** Mean cosine within a cluster of one item: about that of one speaker's local speakers. */
const DEFAULT_WITHIN = 0.75;

/** Clusters as sums over their items: enough for the features of the merge test. Slot i starts as item i. */
export class ClusterSums {
  readonly #totals: Float64Array;
  readonly #weights: Float64Array;
  readonly #squares: Float64Array;
  readonly #seconds: Float64Array;
  readonly #windows: Int32Array[];

  /**
   * @param embeddings [items, dimension], unit length
   * @param weights [items] weight of each in means
   * @param seconds [items] speech that it stands for, overlapping windows counted once
   */
  constructor(
    embeddings: Float32Array,
    private readonly dimension: number,
    weights: Float64Array,
    seconds: Float64Array,
    windows: Int32Array,
  ) {
    this.#totals = Float64Array.from(embeddings, (value, index) => value * weights[Math.floor(index / dimension)]!);
    this.#weights = weights.slice();
    this.#squares = weights.map((weight) => weight * weight);
    this.#seconds = seconds.slice();
    this.#windows = Array.from(windows, (window) => Int32Array.of(window));
  }

  merge(into: number, from: number): void {
    const { dimension } = this;
    for (let d = 0; d < dimension; d++) this.#totals[into * dimension + d]! += this.#totals[from * dimension + d]!;
    this.#weights[into]! += this.#weights[from]!;
    this.#squares[into]! += this.#squares[from]!;
    this.#seconds[into]! += this.#seconds[from]!;
    this.#windows[into] = union(this.#windows[into]!, this.#windows[from]!);
    this.#windows[from] = new Int32Array(0);
  }

  /** Whether clusters `a` and `b` may be one person. */
  mayMerge(a: number, b: number, test: MergeTestParameters): boolean {
    if (Math.min(this.#seconds[a]!, this.#seconds[b]!) < test.minTestedSeconds) return true;
    return this.logOdds(a, b, test) >= test.minLogOdds;
  }

  /** Log-odds that clusters `a` and `b` are one person. */
  logOdds(a: number, b: number, test: MergeTestParameters): number {
    const [smaller, larger] = this.#seconds[a]! <= this.#seconds[b]! ? [a, b] : [b, a];
    const windows = this.#windows[smaller]!;
    return (
      test.offset +
      test.cross * (this.#product(a, b) / (this.#weights[a]! * this.#weights[b]!)) +
      test.withinSmaller * this.#within(smaller) +
      test.withinLarger * this.#within(larger) +
      test.logSmallerSeconds * Math.log(this.#seconds[smaller]! + 0.1) +
      test.logLargerSeconds * Math.log(this.#seconds[larger]! + 0.1) +
      test.sharedWindows * (shared(windows, this.#windows[larger]!) / windows.length)
    );
  }

  #product(a: number, b: number): number {
    let sum = 0;
    for (let d = 0; d < this.dimension; d++) {
      sum += this.#totals[a * this.dimension + d]! * this.#totals[b * this.dimension + d]!;
    }
    return sum;
  }

  /** Mean cosine of pairs of different items, each pair weighted by the product of its weights. */
  #within(cluster: number): number {
    const pairs = this.#weights[cluster]! ** 2 - this.#squares[cluster]!;
    return pairs > 1e-6 ? (this.#product(cluster, cluster) - this.#squares[cluster]!) / pairs : DEFAULT_WITHIN;
  }
}

/** Union of two ascending lists without repetitions. */
function union(a: Int32Array, b: Int32Array): Int32Array {
  const out = new Int32Array(a.length + b.length);
  let length = 0;
  for (let i = 0, j = 0; i < a.length || j < b.length; length++) {
    const left = i < a.length ? a[i]! : Number.POSITIVE_INFINITY;
    const right = j < b.length ? b[j]! : Number.POSITIVE_INFINITY;
    out[length] = Math.min(left, right);
    if (left <= right) i++;
    if (right <= left) j++;
  }
  return out.slice(0, length);
}

/** Length of the intersection of two ascending lists without repetitions. */
function shared(a: Int32Array, b: Int32Array): number {
  let count = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) count++;
    if (a[i]! <= b[j]!) i++;
    else j++;
  }
  return count;
}
