import type { JobKind } from './app-services.ts';

/** Every successful job on a recording is billed at least this much (contract §7). */
const MIN_BILLED_SECONDS = 20;
/** What a voiceprint takes from the credit of an account, which is counted in seconds of audio. */
const VOICEPRINT_CREDIT_SECONDS = 20;
/** The least that anything takes from the credit; an account with less left cannot pay for it. */
export const LEAST_CREDIT_SECONDS = Math.min(MIN_BILLED_SECONDS, VOICEPRINT_CREDIT_SECONDS);

/** What a successful job or stream is billed: the length of its audio, or, for a voiceprint, one voiceprint. */
export function billOf(
  kind: JobKind | 'live',
  durationSeconds: number,
): { readonly billedSeconds: number; readonly creditSeconds: number } {
  if (kind === 'voiceprint') return { billedSeconds: 0, creditSeconds: VOICEPRINT_CREDIT_SECONDS };
  const billedSeconds = Math.max(MIN_BILLED_SECONDS, durationSeconds);
  return { billedSeconds, creditSeconds: billedSeconds };
}
