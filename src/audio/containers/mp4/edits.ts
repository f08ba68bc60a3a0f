import { i64be, u32be } from '../../bytes.ts';
import { MAX_SCAN_SECONDS, type PartStart, type Piece } from '../../container.ts';
import { roundedOff } from '../../packets/rounding.ts';
import { joined } from '../../pieces.ts';

/** One entry of an edit list: a stretch of the media, or nothing, is played for a while (ISO/IEC 14496-12 §8.6.6). */
export interface Edit {
  /** Units of the track; −1 where nothing is played. */
  readonly mediaTime: number;
  /** Units of the movie; 0 in the last entry: up to the end of the media. */
  readonly duration: number;
}

export type EditList =
  | { readonly kind: 'edits'; readonly edits: readonly Edit[]; readonly movieTimescale: number }
  /** Why it cannot be followed, as the rest of a sentence about it. */
  | { readonly kind: 'unusable'; readonly fault: string };

const MAX_EDITS = 1000;
const EMPTY = -1;
const NORMAL_RATE = 0x10000;

const unusable = (fault: string): EditList => ({ kind: 'unusable', fault });

/** @param body of `elst`; undefined where the list is empty or its clock unknown: it says nothing then */
export function parseEdits(body: Uint8Array, movieTimescale: number): EditList | undefined {
  if (body.length < 8 || movieTimescale <= 0) return undefined;
  const isLong = body[0] === 1;
  const entryBytes = isLong ? 20 : 12;
  const count = u32be(body, 4);
  if (count === 0) return undefined;
  if (count > MAX_EDITS) return unusable(`has ${count} entries, more than ${MAX_EDITS}`);
  if (8 + count * entryBytes > body.length) return unusable('is cut short');
  const edits: Edit[] = [];
  const rates: number[] = [];
  let ticks = 0;
  for (let at = 8; edits.length < count; at += entryBytes) {
    const duration = isLong ? i64be(body, at) : u32be(body, at);
    const mediaTime = isLong ? i64be(body, at + 8) : u32be(body, at + 4) | 0;
    if (duration < 0 || mediaTime < EMPTY) return unusable('is damaged');
    ticks += duration;
    edits.push({ mediaTime, duration });
    if (mediaTime !== EMPTY) rates.push(u32be(body, at + entryBytes - 4));
  }
  if (rates.length === 0) return unusable('plays nothing');
  // Where there is one, a rate of 0 is a field that the writer forgot; among several it holds a picture still.
  const isNormal = rates.every((rate) => rate === NORMAL_RATE) || (rates.length === 1 && rates[0] === 0);
  if (!isNormal) return unusable('plays parts of it at another speed');
  if (ticks > MAX_SCAN_SECONDS * movieTimescale) return unusable(`lasts longer than ${MAX_SCAN_SECONDS / 3600} hours`);
  return { kind: 'edits', edits, movieTimescale };
}

/**
 * The list of a recording that continues in fragments. One that is written before they are knows nothing of them: its
 * last piece, where it ends with the samples of the index, is meant to continue.
 *
 * @param media length of the sound in front of the fragments
 */
export function openEnded(list: EditList, media: { readonly timescale: number; readonly duration: number }): EditList {
  const last = list.kind === 'edits' ? list.edits.at(-1) : undefined;
  if (list.kind !== 'edits' || !last || last.mediaTime === EMPTY || last.duration === 0) return list;
  if (media.timescale <= 0 || media.duration <= 0) return list;
  const endSeconds = last.mediaTime / media.timescale + last.duration / list.movieTimescale;
  const isAll = endSeconds >= media.duration / media.timescale - 1 / list.movieTimescale;
  return isAll ? { ...list, edits: [...list.edits.slice(0, -1), { ...last, duration: 0 }] } : list;
}

/**
 * What a list plays; or why it cannot be followed. The recording is read forward, so a list that plays something again,
 * or in another order, is not.
 *
 * @param timescale units of the track a second
 * @param start tells how much longer the packets are than their times say, which the list goes by (`rounding.ts`)
 */
export function playEdits(
  { edits, movieTimescale }: EditList & { kind: 'edits' },
  timescale: number,
  sampleRateHz: number,
  { evenly, packetSamples }: PartStart,
): readonly Piece[] | { readonly fault: string } {
  const off = evenly ? roundedOff(evenly, packetSamples, sampleRateHz) : 0;
  // Where it comes to more than half of the sound, the times say nothing that a list could go by.
  const isBelieved = 2 * Math.abs(off) < packetSamples;
  const rateHz = isBelieved ? (sampleRateHz * packetSamples) / (packetSamples - off) : sampleRateHz;
  // The list is rounded to the clock of the movie, often 1 ms; the media knows its end to the sample.
  const slackSamples = Math.ceil(rateHz / movieTimescale);
  const last = edits.findLastIndex(({ mediaTime }) => mediaTime !== EMPTY);
  const pieces: Piece[] = [];
  let ticks = 0;
  let passed = 0;
  for (const [i, { mediaTime, duration }] of edits.entries()) {
    // Borders are rounded, not lengths, so that errors do not add up.
    const begin = Math.round((ticks * rateHz) / movieTimescale);
    ticks += duration;
    const samples = Math.round((ticks * rateHz) / movieTimescale) - begin;
    if (mediaTime === EMPTY) {
      pieces.push({ samples });
      continue;
    }
    const stated = timescale > 0 ? Math.round((mediaTime * rateHz) / timescale) : 0;
    if (stated < passed - slackSamples) return { fault: 'jumps back' };
    const position = Math.max(stated, passed);
    passed = position + samples;
    if (i === last && duration === 0) pieces.push({ position });
    else pieces.push({ position, samples, ...(i === last && { slackSamples }) });
  }
  return joined(pieces);
}

/**
 * Numbers of samples that iTunes writes into a comment; with HE-AAC they count at the rate of the core, which is half.
 */
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
