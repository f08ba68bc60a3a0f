import type { BlockReader } from '../../block-reader.ts';
import { hasAscii, u32le } from '../../bytes.ts';
import { CRC_OFFSET, pageChecksum } from './crc.ts';

/** One OGG page (RFC 3533 §6). */
export interface Page {
  readonly start: number;
  readonly bodyStart: number;
  readonly end: number;
  readonly serial: number;
  readonly sequence: number;
  /** The first bytes belong to a packet that began on an earlier page. */
  readonly isContinued: boolean;
  readonly isFirst: boolean;
  /** Position at the end of the last packet that ends here; undefined where none does. */
  readonly granule: number | undefined;
  readonly segments: Uint8Array;
}

const HEADER_BYTES = 27;
const MAX_HEADER_BYTES = HEADER_BYTES + 255;
/** Bytes that may lie between two pages; after more the file is taken to be over. */
const MAX_SEARCH_BYTES = 16 << 20;
/** Pages with a wrong checksum in one walk; a file made of false headers would otherwise be summed over and over. */
export const MAX_FALSE_PAGES = 10_000;

/** What a walk over pages found. */
export type PagesEnd = {
  /** Whether the file ends inside a page. */
  isCut?: boolean;
  /** Whether pages were left out. */
  isDamaged?: boolean;
  /** What seemed to be pages, with wrong checksums or cut off. */
  falsePages?: number;
};

/**
 * The pages from `from` on, up to the last whole one. Bytes between pages are passed over, and so are pages with a
 * wrong checksum: what lies in them would be decoded to noise.
 */
export async function* pagesOf(reader: BlockReader, from: number, end: PagesEnd = {}): AsyncGenerator<Page> {
  end.falsePages ??= 0;
  end.isCut = false;
  for (let position = from; ; ) {
    const page = parsePage(await reader.peek(position, MAX_HEADER_BYTES), position);
    const isWhole = page !== undefined && page.end <= reader.sizeBytes;
    if (page && isWhole && (await hasRightChecksum(reader, page))) {
      // What seemed to be a page that the file cuts off was none, if another comes after its start.
      end.isDamaged ||= end.isCut;
      end.isCut = false;
      yield page;
      position = page.end;
      continue;
    }
    if (page) {
      if (isWhole) end.isDamaged = true;
      else end.isCut = true;
      if (++end.falsePages > MAX_FALSE_PAGES) return;
    }
    const found = await findPage(reader, position + 1);
    if (found === undefined) return;
    position = found;
  }
}

async function hasRightChecksum(reader: BlockReader, { start, end }: Page): Promise<boolean> {
  const view = await reader.peek(start, end - start);
  return u32le(view, CRC_OFFSET) === pageChecksum(view.subarray(0, end - start));
}

function parsePage(view: Uint8Array, position: number): Page | undefined {
  if (view.length < HEADER_BYTES || !hasAscii(view, 0, 'OggS') || view[4] !== 0) return undefined;
  const count = view[26];
  if (view.length < HEADER_BYTES + count) return undefined;
  const segments = view.slice(HEADER_BYTES, HEADER_BYTES + count);
  const bodyStart = position + HEADER_BYTES + count;
  const [low, high] = [u32le(view, 6), u32le(view, 10) | 0];
  return {
    start: position,
    bodyStart,
    end: bodyStart + segments.reduce((sum, length) => sum + length, 0),
    serial: u32le(view, 14),
    sequence: u32le(view, 18),
    isContinued: (view[5] & 1) !== 0,
    isFirst: (view[5] & 2) !== 0,
    granule: high < 0 ? undefined : high * 2 ** 32 + low,
    segments,
  };
}

async function findPage(reader: BlockReader, from: number): Promise<number | undefined> {
  const until = Math.min(reader.sizeBytes, from + MAX_SEARCH_BYTES);
  for (let position = from; position + HEADER_BYTES <= until; ) {
    const view = await reader.peek(position, HEADER_BYTES);
    for (let at = view.indexOf(0x4f); at >= 0; at = view.indexOf(0x4f, at + 1)) {
      if (hasAscii(view, at, 'OggS') && view[at + 4] === 0) return position + at;
    }
    position += Math.max(1, view.length - 4);
  }
  return undefined;
}
