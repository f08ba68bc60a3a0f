import type { BlockReader } from '../../block-reader.ts';
import { hasAscii, u32be } from '../../bytes.ts';
import { type Page, pagesOf } from './pages.ts';

/** What the positions of a Theora stream mean (Theora specification, 6.2 and A.2.3). */
interface FrameClock {
  readonly serial: number;
  readonly framesPerSecond: number;
  /** A position is the number of a key frame, shifted, and the frames since then. */
  readonly shift: number;
}

const HEADER_BYTES = 42;
/** Pages in which the first picture should have come. */
const MAX_PAGES = 1000;

/** Time of the first picture, in seconds; undefined where the recording at `from` is no Theora video. */
export async function videoStart(reader: BlockReader, from: number): Promise<number | undefined> {
  let clock: FrameClock | undefined;
  let pages = 0;
  let hasBegun = false;
  for await (const page of pagesOf(reader, from)) {
    if (++pages > MAX_PAGES) return undefined;
    // What is behind belongs to the next recording, and would be walked again for each one in front of it.
    if (page.isFirst && hasBegun) return undefined;
    hasBegun ||= !page.isFirst;
    if (page.isFirst) clock ??= await clockOf(reader, page);
    // All streams of a recording begin before any of them goes on.
    else if (!clock) return undefined;
    // That of the headers is 0.
    else if (page.serial === clock.serial && page.granule) return pageStart(clock, page.granule, page.segments);
  }
  return undefined;
}

async function clockOf(reader: BlockReader, page: Page): Promise<FrameClock | undefined> {
  const head = await reader.peek(page.bodyStart, HEADER_BYTES);
  if (page.end - page.bodyStart < HEADER_BYTES || head[0] !== 0x80 || !hasAscii(head, 1, 'theora')) return undefined;
  const framesPerSecond = u32be(head, 22) / u32be(head, 26);
  if (!(framesPerSecond > 0) || !Number.isFinite(framesPerSecond)) return undefined;
  return { serial: page.serial, framesPerSecond, shift: ((head[40] & 3) << 3) | (head[41] >> 5) };
}

/** A page states how many frames there are at its end; each is a packet. */
function pageStart({ framesPerSecond, shift }: FrameClock, granule: number, segments: Uint8Array): number {
  const frames = Math.floor(granule / 2 ** shift) + (granule % 2 ** shift);
  const inPage = segments.filter((length) => length < 255).length;
  return Math.max(0, frames - inPage) / framesPerSecond;
}
