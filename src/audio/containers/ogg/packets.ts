import type { BlockReader } from '../../block-reader.ts';
import { MAX_PACKET_BYTES, type PacketWalk, type RawPacket } from '../../packets/packet.ts';
import { StepBudget } from '../../step-budget.ts';
import { type Page, type PagesEnd, pagesOf } from './pages.ts';

/** Bytes that make up for a page without a packet. */
const BYTES_PER_PAGE = 256;

/** Packets of one logical stream, put together page by page. */
export class PacketAssembler {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #entry: number | undefined;
  /** Whether the packet that continues is known from its start. */
  #isOpen = false;
  /** Whether it is too long to be kept. */
  #isTooLong = false;
  #sequence: number | undefined;

  /** @param marksLong whether a packet that is too long is given without its bytes, so that it counts */
  constructor(
    private readonly serial: number,
    private readonly marksLong = false,
  ) {}

  /** The packets that end on a page; those of other streams give none. */
  async add(reader: BlockReader, page: Page): Promise<RawPacket[]> {
    if (page.serial !== this.serial) return [];
    const isNext = this.#sequence === undefined || page.sequence === (this.#sequence + 1) >>> 0;
    this.#sequence = page.sequence;
    if (!isNext || !page.isContinued) this.#drop();
    const body = (await reader.peek(page.bodyStart, page.end - page.bodyStart)).slice(0, page.end - page.bodyStart);
    const packets: RawPacket[] = [];
    /** Whether a packet began on this page already: only the first may be where a reader begins. */
    let hasBegun = false;
    /** Bytes in front of the first packet that begins here. */
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
    const [first] = this.#parts;
    let bytes = first ?? new Uint8Array(0);
    if (this.#parts.length > 1) {
      bytes = new Uint8Array(this.#bytes);
      let at = 0;
      for (const part of this.#parts) {
        bytes.set(part, at);
        at += part.length;
      }
    }
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

/** What a walk met. */
export type OggFaults = PagesEnd & {
  /** First page of another recording, after this one. */
  nextRecording?: number;
  /** Too many pages gave no packet. */
  isEndless?: boolean;
  /** Whether bytes were passed over in front of the first page. */
  isLateStart?: boolean;
  /** Samples that are missing at the beginning. */
  lostSamples?: number;
  /** Padding of a recording of one page. */
  onlyPadding?: number;
  /** Number of the recording in the file, empty ones counted, and what seemed to be pages in front of it. */
  links?: number;
  earlierFalsePages?: number;
};

/** The packets of one stream from the page at `from` on, with the positions that the pages state. */
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
