import type { BlockReader } from '../block-reader.ts';
import { hasAscii, u32le } from '../bytes.ts';
import { MAX_PACKET_BYTES, type PacketWalk, type RawPacket, StepBudget } from '../container.ts';
import { crc32MsbFirst } from '../crc.ts';
import { concatenated } from '../memory.ts';

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
  /** Position at the end of the last packet that ends here; undefined if none does. */
  readonly granule: number | undefined;
  readonly segments: Uint8Array;
}

const HEADER_BYTES = 27;
const MAX_HEADER_BYTES = HEADER_BYTES + 255;
/** Bytes that may lie between two pages; after more the walk ends. */
const MAX_SEARCH_BYTES = 16 << 20;
/** Pages with a wrong checksum in one walk: bounds the time for checksums of a file made of false headers. */
export const MAX_FALSE_PAGES = 10_000;

/** Faults that a walk over pages found. */
export type PagesEnd = {
  /** Whether the file ends inside a page. */
  isCut?: boolean;
  /** Whether pages were left out. */
  isDamaged?: boolean;
  /** Number of page headers with a wrong checksum or a truncated page. */
  falsePages?: number;
};

/**
 * The pages from `from` to the last complete one. Skips bytes between pages, and pages with a wrong checksum, which
 * would be decoded to noise.
 */
export async function* pagesOf(reader: BlockReader, from: number, end: PagesEnd = {}): AsyncGenerator<Page> {
  end.falsePages ??= 0;
  end.isCut = false;
  for (let position = from; ; ) {
    const page = parsePage(await reader.peek(position, MAX_HEADER_BYTES), position);
    const isComplete = page !== undefined && page.end <= reader.sizeBytes;
    if (page && isComplete && (await hasRightChecksum(reader, page))) {
      // A valid page after the start of a truncated one shows that the latter was no page.
      end.isDamaged ||= end.isCut;
      end.isCut = false;
      yield page;
      position = page.end;
      continue;
    }
    if (page) {
      if (isComplete) end.isDamaged = true;
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

/** Offset of the checksum in a page; its field counts as 0 in the sum. */
export const CRC_OFFSET = 22;
const ZERO_FIELD = new Uint8Array(4);

/** The checksum that a page should have, unsigned. @param page the complete page */
export const pageChecksum = (page: Uint8Array): number =>
  crc32MsbFirst(
    page.subarray(CRC_OFFSET + 4),
    crc32MsbFirst(ZERO_FIELD, crc32MsbFirst(page.subarray(0, CRC_OFFSET))),
  ) >>> 0;

/** Bytes that compensate for a page without a packet. */
const BYTES_PER_PAGE = 256;

/** Assembles the packets of one logical stream page by page. */
export class PacketAssembler {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #entry: number | undefined;
  /** Whether the start of the current packet is known. */
  #isOpen = false;
  /** Whether the current packet exceeds the limit. */
  #isTooLong = false;
  #sequence: number | undefined;

  /** @param marksLong whether a packet above the limit is returned without its bytes, so that it counts */
  constructor(
    private readonly serial: number,
    private readonly marksLong = false,
  ) {}

  /** The packets that end on a page; none for a page of another stream. */
  async add(reader: BlockReader, page: Page): Promise<RawPacket[]> {
    if (page.serial !== this.serial) return [];
    const isNext = this.#sequence === undefined || page.sequence === (this.#sequence + 1) >>> 0;
    this.#sequence = page.sequence;
    if (!isNext || !page.isContinued) this.#drop();
    const body = (await reader.peek(page.bodyStart, page.end - page.bodyStart)).slice(0, page.end - page.bodyStart);
    const packets: RawPacket[] = [];
    /** Whether a packet has begun on this page: a reader can only start with the first one. */
    let hasBegun = false;
    /** Whether the next bytes belong to a packet of an earlier page. */
    let isRest = page.isContinued;
    let at = 0;
    for (let i = 0; i < page.segments.length; ) {
      let length = 0;
      let isEnd = false;
      while (i < page.segments.length && !isEnd) {
        isEnd = page.segments[i] < 255;
        length += page.segments[i++];
      }
      if (!isRest) {
        this.#drop();
        this.#isOpen = true;
        this.#entry = hasBegun ? undefined : page.start;
        hasBegun = true;
      }
      isRest = false;
      if (this.#isOpen) {
        this.#append(body.subarray(at, at + length));
      }
      at += length;
      if (!isEnd) break;
      if (this.#isOpen && (this.marksLong || !this.#isTooLong)) packets.push(this.#take());
    }
    return packets;
  }

  #append(part: Uint8Array): void {
    this.#isTooLong ||= this.#bytes + part.length > MAX_PACKET_BYTES;
    if (this.#isTooLong) {
      this.#parts = [];
      this.#bytes = 0;
    } else {
      this.#parts.push(part);
      this.#bytes += part.length;
    }
  }

  #take(): RawPacket {
    const bytes = this.#parts.length === 1 ? this.#parts[0] : concatenated(Uint8Array, this.#parts);
    const packet = { offset: 0, length: bytes.length, bytes, entry: this.#entry };
    this.#drop();
    return packet;
  }

  #drop(): void {
    this.#parts = [];
    this.#bytes = 0;
    this.#isOpen = false;
    this.#isTooLong = false;
    this.#entry = undefined;
  }
}

/** Faults and facts that a walk found. */
export type OggFaults = PagesEnd & {
  /** First page of the next recording. */
  nextRecording?: number;
  /** Whether too many pages in a row had no packet. */
  isEndless?: boolean;
  /** Whether bytes were skipped before the first page. */
  isLateStart?: boolean;
  /** Samples that are missing at the beginning. */
  lostSamples?: number;
  /** Padding of a recording of one page. */
  onlyPadding?: number;
  /** Number of the recording in the file, including empty ones. */
  links?: number;
  /** False pages before this recording. */
  earlierFalsePages?: number;
};

/** The packets of one stream from the page at `from`, with the positions that the pages state. */
export async function* walkOgg(reader: BlockReader, serial: number, from: number, faults: OggFaults): PacketWalk {
  const assembler = new PacketAssembler(serial);
  const budget = new StepBudget(BYTES_PER_PAGE, from);
  faults.isEndless = false;
  faults.isLateStart = undefined;
  for await (const page of pagesOf(reader, from, faults)) {
    faults.isLateStart ??= page.start > from;
    if (page.isFirst) {
      faults.nextRecording = page.start;
      return;
    }
    const packets = await assembler.add(reader, page);
    faults.isEndless = !budget.spend(page.end, 1, Math.min(1, packets.length));
    if (faults.isEndless) return;
    if (packets.length > 0) yield { packets, endSample: page.granule };
  }
}
