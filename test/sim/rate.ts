/** Sample rate of the simulation: a thousandth of the real one, so that chunks are small. */
export const RATE_HZ = 16;
