/**
 * The powerset of local speakers: every subset with at most `maxSimultaneous` members is one class.
 * (Plaquet & Bredin, "Powerset multi-class cross entropy loss for neural speaker diarization", 2023)
 */
export interface Powerset {
  readonly speakers: number;
  readonly classes: number;
  /** [classes, speakers], 1 where the speaker is a member of the class */
  readonly mapping: Uint8Array;
  /** [classes], members of each class */
  readonly cardinality: Uint8Array;
}

/**
 * Classes in the order of the field: by size, then lexicographically.
 *
 * With 3 speakers, 2 at once: `{}`, `{1}`, `{2}`, `{3}`, `{1,2}`, `{1,3}`, `{2,3}`, so that `mapping` is
 * `000 100 010 001 110 101 011`.
 */
export function buildPowerset(speakers: number, maxSimultaneous: number): Powerset {
  const sets: number[][] = [];
  for (let size = 0; size <= Math.min(maxSimultaneous, speakers); size++) sets.push(...combinations(speakers, size));
  const mapping = new Uint8Array(sets.length * speakers);
  sets.forEach((members, index) => {
    for (const member of members) mapping[index * speakers + member] = 1;
  });
  return { speakers, classes: sets.length, mapping, cardinality: Uint8Array.from(sets, (members) => members.length) };
}

function combinations(from: number, size: number, first = 0): number[][] {
  if (size === 0) return [[]];
  const found: number[][] = [];
  for (let head = first; head <= from - size; head++) {
    for (const tail of combinations(from, size - 1, head + 1)) found.push([head, ...tail]);
  }
  return found;
}

/** Index of the largest of `count` values from `offset`; the first of equals, as numpy and torch have it. */
export function argmax(values: ArrayLike<number>, offset: number, count: number): number {
  let best = 0;
  for (let index = 1; index < count; index++) {
    if (values[offset + index] > values[offset + best]) best = index;
  }
  return best;
}

/**
 * Hard decoding: the members of each frame's most likely class.
 * scores [frames, classes] (logits, log-probabilities or probabilities) → [frames, speakers] of 0 and 1
 */
export function decodeHard(scores: ArrayLike<number>, powerset: Powerset): Uint8Array {
  const { classes, speakers, mapping } = powerset;
  const frames = scores.length / classes;
  const active = new Uint8Array(frames * speakers);
  for (let frame = 0; frame < frames; frame++) {
    const best = argmax(scores, frame * classes, classes);
    for (let speaker = 0; speaker < speakers; speaker++) {
      active[frame * speakers + speaker] = mapping[best * speakers + speaker];
    }
  }
  return active;
}

/**
 * Probability that each speaker is active, alone or with others.
 * probabilities [frames, classes], any scale → [frames, speakers], same scale
 */
export function marginals(probabilities: ArrayLike<number>, powerset: Powerset): Float32Array {
  const { classes, speakers, mapping } = powerset;
  const frames = probabilities.length / classes;
  const out = new Float32Array(frames * speakers);
  for (let frame = 0; frame < frames; frame++) {
    for (let index = 0; index < classes; index++) {
      const probability = probabilities[frame * classes + index];
      for (let speaker = 0; speaker < speakers; speaker++) {
        if (mapping[index * speakers + speaker] === 1) out[frame * speakers + speaker] += probability;
      }
    }
  }
  return out;
}
