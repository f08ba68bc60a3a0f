import type { BlockReader } from '../../block-reader.ts';
import { MAX_PACKET_BYTES, type PacketWalk, type RawPacket } from '../../packets/packet.ts';
import { type Page, type PagesEnd, pagesOf } from './pages.ts';

/** Packets of one logical stream, put together page by page. */
export class PacketAssembler {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #entry: number | undefined;
  /** Whether the packet that goes on is known from its start. */
  #isOpen = false;
  #sequence: number | undefined;

  constructor(private readonly serial: number) {}

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
        this.#parts.push(body.subarray(at, at + length));
        this.#bytes += length;
        if (this.#bytes > MAX_PACKET_BYTES) this.#drop();
      }
      at += length;
      if (!isEnd) break;
      if (this.#isOpen) packets.push(this.#take());
    }
    return packets;
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
    this.#entry = undefined;
  }
}

/** Where a walk ended: the file's end, or the first page of another recording behind this one. */
export interface WalkEnd extends PagesEnd {
  nextRecording?: number;
  /** Granule position of the last page. */
  granule?: number;
}

/** The packets of one stream from the page at `from` on, with the positions that the pages state. */
export async function* walkOgg(reader: BlockReader, serial: number, from: number, end: WalkEnd = {}): PacketWalk {
  const assembler = new PacketAssembler(serial);
  for await (const page of pagesOf(reader, from, end)) {
    if (page.isFirst) {
      end.nextRecording = page.start;
      return;
    }
    const packets = await assembler.add(reader, page);
    if (packets.length === 0) continue;
    end.granule = page.granule;
    yield { packets, endSample: page.granule };
  }
}
