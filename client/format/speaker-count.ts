import type { SpeakerCount } from '../sdk/types.ts';

/** Alternatives below this confidence are not worth a reader's time. */
const MIN_SHOWN_CONFIDENCE = 15;

/** `3 speakers`, or `1 speaker, perhaps 2`. */
export function speakerCountText({ estimate, alternatives }: SpeakerCount): string {
  const others = alternatives.filter(({ confidence }) => confidence >= MIN_SHOWN_CONFIDENCE).map(({ count }) => count);
  const found = `${estimate} ${estimate === 1 ? 'speaker' : 'speakers'}`;
  return others.length === 0 ? found : `${found}, perhaps ${others.join(' or ')}`;
}
