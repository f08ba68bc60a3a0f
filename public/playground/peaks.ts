/** Peaks per second in the finest level. */
export const PEAKS_PER_SECOND = 100;
/** Number of peaks of the finer level that one peak summarises. */
const FACTOR = 4;
/**
 * A span is read from the coarsest level with at least this many peaks in it; its bounds are off by at most one peak.
 */
const MIN_PEAKS_READ = 8;

/**
 * Peaks of a recording, 0 to 255, in levels from fine to coarse, so that a column of the waveform reads few values at
 * any zoom. Three hours take 1.4 MB.
 */
export class Peaks {
  private levels: Uint8Array[] = [new Uint8Array(0)];
  /** Number of known peaks in the finest level. */
  private length = 0;

  /** Time up to which peaks are known. */
  get seconds(): number {
    return this.length / PEAKS_PER_SECOND;
  }

  /** Adds samples. @param startSeconds time of the first sample in the recording */
  add(samples: Float32Array, sampleRateHz: number, startSeconds: number): void {
    const first = Math.round(startSeconds * PEAKS_PER_SECOND);
    const perPeak = sampleRateHz / PEAKS_PER_SECOND;
    const count = Math.ceil(samples.length / perPeak);
    this.reserve(first + count);
    const finest = this.levels[0];
    for (let i = 0; i < count; i++) {
      let loudest = 0;
      const end = Math.min(samples.length, Math.round((i + 1) * perPeak));
      for (let at = Math.round(i * perPeak); at < end; at++) {
        const size = Math.abs(samples[at]);
        if (size > loudest) loudest = size;
      }
      finest[first + i] = Math.max(finest[first + i], Math.min(255, Math.round(loudest * 255)));
    }
    this.length = Math.max(this.length, first + count);
    this.summarise(first, first + count);
  }

  /** Returns the loudest sample between two times, 0 to 1. */
  loudest(start: number, end: number): number {
    let [from, to] = [start * PEAKS_PER_SECOND, end * PEAKS_PER_SECOND];
    let level = 0;
    while (level + 1 < this.levels.length && to - from >= MIN_PEAKS_READ * FACTOR) {
      level++;
      from /= FACTOR;
      to /= FACTOR;
    }
    const peaks = this.levels[level];
    let loudest = 0;
    for (let i = Math.max(0, Math.floor(from)); i < Math.min(peaks.length, Math.max(to, Math.floor(from) + 1)); i++) {
      if (peaks[i] > loudest) loudest = peaks[i];
    }
    return loudest / 255;
  }

  private reserve(length: number): void {
    let needed = length;
    for (let level = 0; level === 0 || needed > FACTOR; level++) {
      const known = this.levels[level] ?? new Uint8Array(0);
      if (known.length < needed) {
        const grown = new Uint8Array(Math.max(needed, Math.ceil(1.5 * known.length)));
        grown.set(known);
        this.levels[level] = grown;
      }
      needed = Math.ceil(needed / FACTOR);
    }
  }

  private summarise(from: number, to: number): void {
    for (let level = 1; level < this.levels.length; level++) {
      [from, to] = [Math.floor(from / FACTOR), Math.ceil(to / FACTOR)];
      const [finer, coarser] = [this.levels[level - 1], this.levels[level]];
      for (let i = from; i < Math.min(to, coarser.length); i++) {
        let loudest = 0;
        for (let at = i * FACTOR; at < Math.min((i + 1) * FACTOR, finer.length); at++) {
          if (finer[at] > loudest) loudest = finer[at];
        }
        coarser[i] = loudest;
      }
    }
  }
}
