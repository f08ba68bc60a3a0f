import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type NpyArray, readNpy } from '../helpers/npy.ts';

const SHARED = fileURLToPath(new URL('../../../shared/golden/', import.meta.url));
const DATA = fileURLToPath(new URL('./data/', import.meta.url));

/** Whether the arrays of the reference pipeline are beside the checkout. */
export const hasGolden = existsSync(`${SHARED}README.md`);
if (!hasGolden) console.warn('skipped: the golden arrays (../shared/golden) are not beside this checkout');

export const golden = (name: string): NpyArray => readNpy(`${SHARED}${name}.npy`);
export const goldenPath = (name: string): string => `${SHARED}${name}`;
/** Arrays made by `make_reference.py`. */
export const reference = (name: string): NpyArray => readNpy(`${DATA}ref_${name}.npy`);
export const referenceJsonPath = `${DATA}ref_reference.json`;

/** Largest absolute difference of two arrays of the same length. */
export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (let index = 0; index < a.length; index++) {
    const difference = Math.abs(a[index] - b[index]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

/** Renumbers clusters by first appearance, so that equal partitions have equal labels. */
export function canonical(labels: ArrayLike<number>): number[] {
  const numbers = new Map<number, number>();
  return Array.from(labels, (label) => {
    if (!numbers.has(label)) numbers.set(label, numbers.size);
    return numbers.get(label)!;
  });
}
