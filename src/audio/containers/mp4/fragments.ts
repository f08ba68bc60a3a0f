import type { BlockReader } from '../../block-reader.ts';
import { u32be } from '../../bytes.ts';
import { MAX_PACKET_BYTES, type PacketRun, type PacketWalk, type RawPacket } from '../../packets/packet.ts';
import { type Box, boxesIn, boxesOf, readBody } from './boxes.ts';

/** What holds for packets of a track where a fragment says nothing (`trex`). */
export interface FragmentDefaults {
  readonly duration: number;
  readonly size: number;
}

export interface FragmentWalk {
  readonly trackId: number;
  readonly timescale: number;
  readonly defaults: FragmentDefaults;
}

/** A `moof` box describes some seconds; one of this size would be an hour. */
const MAX_MOOF_BYTES = 4 << 20;

/** Packets of one run. A fragment may claim any number of them, so that they are never held together. */
const MAX_RUN_PACKETS = 1024;

/** The packets of one track from the fragment at `from` on (ISO/IEC 14496-12 §8.8). Ends where a packet is not in the file. */
export async function* walkFragments(reader: BlockReader, walk: FragmentWalk, from: number): PacketWalk {
  for await (const box of boxesOf(reader, from, reader.sizeBytes)) {
    if (box.type !== 'moof' || box.end - box.start > MAX_MOOF_BYTES) continue;
    const body = await readBody(reader, box, MAX_MOOF_BYTES);
    const isWhole = yield* fragmentRuns(body, box, walk, reader.sizeBytes);
    if (!isWhole) return;
  }
}

/**
 * The packets of the track in one fragment, the first with an entry.
 *
 * @returns whether it is whole: false when the file ends inside it
 */
function* fragmentRuns(
  body: Uint8Array,
  moof: Box,
  walk: FragmentWalk,
  fileBytes: number,
): Generator<PacketRun, boolean> {
  let entry: number | undefined = moof.start;
  /** End of the data of the track fragment in front: where the next begins that says nothing else. */
  let dataEnd = moof.start;
  for (const traf of boxesIn(body)) {
    if (traf.type !== 'traf') continue;
    let header: TrackFragment | undefined;
    let ticks: number | undefined;
    for (const box of boxesIn(body, traf.bodyStart, traf.end)) {
      const view = body.subarray(box.bodyStart, box.end);
      if (box.type === 'tfhd') header = parseTrackFragment(view, walk, moof.start, dataEnd);
      else if (box.type === 'tfdt' && view.length >= 8) {
        ticks = view[0] === 1 && view.length >= 12 ? u32be(view, 4) * 2 ** 32 + u32be(view, 8) : u32be(view, 4);
      } else if (box.type === 'trun' && header) {
        const run = new TrackRun(view, header, { offset: dataEnd, ticks, timescale: walk.timescale, fileBytes });
        if (header.trackId !== walk.trackId) run.pass();
        else {
          for (let packets = run.next(); packets.length > 0; packets = run.next()) {
            if (entry !== undefined) packets[0] = { ...packets[0], entry };
            entry = undefined;
            yield { packets, endSeconds: run.endSeconds };
          }
          if (run.isCut) return false;
        }
        dataEnd = run.offset;
        ticks = run.ticks;
      }
    }
  }
  return true;
}

interface TrackFragment extends FragmentDefaults {
  readonly trackId: number;
  readonly baseOffset: number;
}

function parseTrackFragment(
  view: Uint8Array,
  walk: FragmentWalk,
  moofStart: number,
  dataEnd: number,
): TrackFragment | undefined {
  if (view.length < 8) return undefined;
  const flags = u32be(view, 0);
  const trackId = u32be(view, 4);
  let at = 8;
  const field = (flag: number, bytes: number): number | undefined => {
    if (!(flags & flag) || at + bytes > view.length) return undefined;
    at += bytes;
    return bytes === 8 ? u32be(view, at - 8) * 2 ** 32 + u32be(view, at - 4) : u32be(view, at - 4);
  };
  const base = field(0x01, 8);
  field(0x02, 4);
  const duration = field(0x08, 4) ?? walk.defaults.duration;
  const size = field(0x10, 4) ?? walk.defaults.size;
  return { trackId, duration, size, baseOffset: base ?? (flags & 0x20000 ? moofStart : dataEnd) };
}

interface RunPlace {
  readonly offset: number;
  readonly ticks: number | undefined;
  readonly timescale: number;
  readonly fileBytes: number;
}

/** One `trun`: packets that lie behind one another. */
class TrackRun {
  /** Where the next packet lies. */
  offset: number;
  /** When it begins, where the fragment says that. */
  ticks: number | undefined;
  /** Whether the file ends before it does. */
  isCut = false;
  readonly #flags: number;
  readonly #entryBytes: number;
  readonly #sizeAt: number;
  #at = 8;
  #left = 0;

  constructor(
    private readonly view: Uint8Array,
    private readonly header: TrackFragment,
    private readonly place: RunPlace,
  ) {
    this.offset = place.offset;
    this.ticks = place.ticks;
    this.#flags = view.length < 8 ? 0 : u32be(view, 0);
    if (this.#flags & 0x01 && view.length >= 12) {
      this.offset = header.baseOffset + (u32be(view, this.#at) | 0);
      this.#at += 4;
    }
    if (this.#flags & 0x04) this.#at += 4;
    const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => this.#flags & flag);
    this.#entryBytes = 4 * fields.length;
    this.#sizeAt = 4 * fields.indexOf(0x200);
    if (view.length < 8) return;
    // A count without entries is bounded by the bytes that are there; packets of no bytes are none.
    const room =
      this.#entryBytes > 0
        ? Math.floor((view.length - this.#at) / this.#entryBytes)
        : header.size > 0
          ? Math.floor(place.fileBytes / header.size)
          : 0;
    this.#left = Math.min(u32be(view, 4), Math.max(0, room));
  }

  get endSeconds(): number | undefined {
    return this.#secondsOf(this.ticks);
  }

  /** The next packets, not more than a run may have; none at the end. */
  next(): RawPacket[] {
    const packets: RawPacket[] = [];
    while (this.#left > 0 && !this.isCut && packets.length < MAX_RUN_PACKETS) {
      const packet = this.#step();
      if (packet) packets.push(packet);
    }
    return packets;
  }

  /** Goes to the end without looking at packets: of another track. */
  pass(): void {
    if (this.#entryBytes === 0) {
      this.offset += this.#left * this.header.size;
      if (this.ticks !== undefined) this.ticks += this.#left * this.header.duration;
      this.#left = 0;
    }
    while (this.#left > 0 && !this.isCut) this.#step();
  }

  /** One packet on; undefined where it is damage, or not in the file. */
  #step(): RawPacket | undefined {
    const { view, header, offset, ticks } = this;
    const length = this.#flags & 0x200 ? u32be(view, this.#at + this.#sizeAt) : header.size;
    const duration = this.#flags & 0x100 ? u32be(view, this.#at) : header.duration;
    this.isCut = offset < 0 || offset + length > this.place.fileBytes;
    if (this.isCut) return undefined;
    this.#left--;
    this.#at += this.#entryBytes;
    this.offset += length;
    if (ticks !== undefined) this.ticks = ticks + duration;
    return length <= MAX_PACKET_BYTES ? { offset, length, seconds: this.#secondsOf(ticks) } : undefined;
  }

  #secondsOf(ticks: number | undefined): number | undefined {
    return ticks === undefined || this.place.timescale <= 0 ? undefined : ticks / this.place.timescale;
  }
}
