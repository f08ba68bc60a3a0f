/** Samples of a second: a thousandth of what it is, so that chunks are written and read in no time. */
export const RATE_HZ = 16;
