import { isUsableRate, MAX_CHANNELS, MAX_RATE_HZ, MIN_RATE_HZ } from './container.ts';
import { fail } from './result.ts';

/** Why a rate or a number of channels is refused; undefined when both are fine. */
export function shapeFault(name: string, sampleRateHz: number, channels: number): ReturnType<typeof fail> | undefined {
  if (!Number.isInteger(channels) || channels < 1 || channels > MAX_CHANNELS) {
    return fail('unsupported', `The ${name} file has ${channels} channels; 1 to ${MAX_CHANNELS} are supported.`);
  }
  if (isUsableRate(sampleRateHz)) return undefined;
  const range = `${MIN_RATE_HZ} to ${MAX_RATE_HZ} Hz`;
  return fail('unsupported', `The ${name} file has a sample rate of ${sampleRateHz} Hz; ${range} are supported.`);
}
