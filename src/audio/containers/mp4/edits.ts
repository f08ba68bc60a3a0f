import { u32be } from '../../bytes.ts';
import { MAX_SCAN_SECONDS } from '../../container.ts';

/** Which stretch of the track's media is played, and when (ISO/IEC 14496-12 §8.6.6). */
export interface Edit {
  /** Silence in front, seconds. */
  readonly delaySeconds: number;
  /** Where in the media playing begins, in units of the track. */
  readonly mediaTime: number;
  /** 0 up to the end of the media. */
  readonly durationSeconds: number;
  /** What the duration is rounded to. */
  readonly tickSeconds: number;
  /** The list cuts the media into pieces, of which this is all from the first to the end of the media. */
  readonly hasCuts: boolean;
}

const MAX_ENTRIES = 1000;

/** @param body of `elst` */
export function parseEdits(body: Uint8Array, movieTimescale: number): Edit | undefined {
  if (body.length < 8 || movieTimescale <= 0) return undefined;
  const isLong = body[0] === 1;
  const entryBytes = isLong ? 20 : 12;
  const count = Math.min(u32be(body, 4), MAX_ENTRIES, Math.floor((body.length - 8) / entryBytes));
  let delay = 0;
  let edit: { mediaTime: number; duration: number } | undefined;
  let played = 0;
  for (let i = 0, at = 8; i < count; i++, at += entryBytes) {
    const duration = isLong ? u32be(body, at) * 2 ** 32 + u32be(body, at + 4) : u32be(body, at);
    const timeAt = at + (isLong ? 8 : 4);
    const high = u32be(body, timeAt) | 0;
    const mediaTime = isLong ? high * 2 ** 32 + u32be(body, timeAt + 4) : high;
    if (mediaTime >= 0) {
      edit ??= { mediaTime, duration };
      played++;
    } else if (!edit) delay += duration;
  }
  if (!edit || delay > MAX_SCAN_SECONDS * movieTimescale) return undefined;
  return {
    delaySeconds: delay / movieTimescale,
    mediaTime: edit.mediaTime,
    durationSeconds: played === 1 ? edit.duration / movieTimescale : 0,
    tickSeconds: 1 / movieTimescale,
    hasCuts: played > 1,
  };
}

/** Numbers of samples that iTunes writes into a comment; with HE-AAC they count at the rate of the core, which is half. */
export interface GaplessComment {
  readonly delaySamples: number;
  readonly paddingSamples: number;
  readonly recordingSamples: number;
}

/** @param text value of the tag `iTunSMPB`: numbers in hexadecimal */
export function parseGaplessComment(text: string): GaplessComment | undefined {
  const match = /^\s*[0-9a-f]{8}\s+([0-9a-f]{8})\s+([0-9a-f]{8})\s+([0-9a-f]{16})/i.exec(text);
  if (!match) return undefined;
  const [delaySamples, paddingSamples, recordingSamples] = match.slice(1).map((digits) => Number.parseInt(digits, 16));
  return { delaySamples, paddingSamples, recordingSamples };
}
