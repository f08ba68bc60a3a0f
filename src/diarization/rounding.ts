/** Rounds halves to the even neighbour, as numpy's `rint` does. */
export function rint(value: number): number {
  const floor = Math.floor(value);
  const fraction = value - floor;
  if (fraction !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** At most three decimals, the precision of the times in the output. */
export function toMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
