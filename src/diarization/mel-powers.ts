/** Mel powers of the segmentation's front end, see `MelPowerPort`. */
export const POWER_BANDS = 64;
export const POWER_SHIFT_SAMPLES = 160;
