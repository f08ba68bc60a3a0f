import { type BlockReader, skipZeros } from '../block-reader.ts';
import { hasAscii, u32be } from '../bytes.ts';
import { MAX_GAP_SECONDS } from '../clock.ts';
import { MAX_PACKET_BYTES, type PacketRun, type PacketWalk, type RawPacket } from '../container.ts';
import { type Box, boxesIn, boxesOf, type EditList, findBox, MAX_BOXES, readBody } from './mp4-boxes.ts';

/** A `moof` box describes some seconds; one of this size would be an hour. */
const MAX_MOOF_BYTES = 4 << 20;

/** What a walk over fragments found to be not quite right. */
export type FragmentFaults = {
  /** The file ends inside a fragment. */
  isCut?: boolean;
  /** Something was passed over in front of later fragments, or in place of them. */
  isDamaged?: boolean;
  /** Another file was appended, whose fragments look the same as those of the first. */
  hasAnother?: boolean;
  /** Packets of another description were left out. */
  hasOthers?: boolean;
};

/** The head of one fragment. */
interface Fragment {
  readonly box: Box;
  /** Whether another index stands in front of it: where it counts bytes, it is from the start of another file. */
  readonly isOfAnother: boolean;
}

/** How far after a damaged place the next fragment is looked for. */
const MAX_SEARCH_BYTES = 64 << 20;
/** Damaged places in one walk. */
const MAX_DAMAGES = 1000;
/** Bytes after the last box that may be a tag or padding. */
const MAX_TAIL_BYTES = 4096;
/** What boxes are called. Zeros in the place of one would be a box up to the end of the file, by their size. */
const IS_TYPE = /^[\x20-\x7e]{4}$/;
/** A fragment's head: its first box in it is its number, of 16 bytes. */
const SIGNATURE_BYTES = 16;

/** The whole `moof` boxes from `from` on. Where no box is, or one that cannot be, it continues at the next fragment. */
async function* fragmentsOf(reader: BlockReader, from: number, faults: FragmentFaults): AsyncGenerator<Fragment> {
  const end = reader.sizeBytes;
  let position = from;
  let boxes = 0;
  let isOfAnother = false;
  for (let damages = 0; damages <= MAX_DAMAGES; damages++) {
    let cut: string | undefined;
    for await (const box of boxesOf(reader, position, end)) {
      const isFragment = box.type === 'moof';
      boxes++;
      if (box.isCut) cut = box.type;
      if (box.isCut || !IS_TYPE.test(box.type) || (isFragment && box.end - box.start > MAX_MOOF_BYTES)) break;
      if (isFragment) yield { box, isOfAnother };
      isOfAnother ||= box.type === 'moov';
      position = box.end;
    }
    if (boxes >= MAX_BOXES) return;
    const rest = end - position;
    const next = rest < SIGNATURE_BYTES ? undefined : await findFragment(reader, position + 1);
    if (next === undefined) {
      const searched = Math.min(end, position + MAX_SEARCH_BYTES);
      if (cut === 'moof' || cut === 'mdat') faults.isCut = true;
      else if (rest > MAX_TAIL_BYTES) faults.isDamaged ||= (await skipZeros(reader, position, searched)) < searched;
      return;
    }
    faults.isDamaged = true;
    position = next;
  }
}

/** The next place that looks like the start of a fragment. */
async function findFragment(reader: BlockReader, from: number): Promise<number | undefined> {
  const until = Math.min(reader.sizeBytes, from + MAX_SEARCH_BYTES);
  for (let position = from; position + SIGNATURE_BYTES <= until; ) {
    const view = await reader.peek(position, SIGNATURE_BYTES);
    for (let at = view.indexOf(0x6d, 4); at >= 0 && at + 12 <= view.length; at = view.indexOf(0x6d, at + 1)) {
      if (hasAscii(view, at, 'moof\0\0\0\x10mfhd')) return position + at - 4;
    }
    position += Math.max(1, view.length - SIGNATURE_BYTES + 1);
  }
  return undefined;
}

/** What determines when a track begins: its clock, and where its packets are. */
export interface TrackClock {
  readonly id: number;
  readonly timescale: number;
  readonly edits: EditList | undefined;
  /** Whether packets of it are in the tables of the index: these come first, and begin at 0. */
  readonly isTabled: boolean;
}

/** Units of each track at its first packet in the fragments, by the track's number. */
export type FragmentStarts = Map<number, number>;

/** Tracks noted; a fragment may claim any number of them. */
const MAX_TRACKS = 100;

/** @param ticks decode time of the first packet of a fragment, and how much later than that it is played */
function noteStart(starts: FragmentStarts, trackId: number, ticks: number): void {
  if (!starts.has(trackId) && starts.size < MAX_TRACKS) starts.set(trackId, ticks);
}

/**
 * How much later a track begins than the earliest of its file. Recordings that were cut out of a live stream begin at
 * any time, all their tracks alike: so only the difference counts.
 */
export function lateSeconds(track: TrackClock, all: readonly TrackClock[], starts: FragmentStarts): number {
  const own = startSeconds(track, starts);
  if (own === undefined) return 0;
  const earliest = all.reduce((least, other) => Math.min(least, startSeconds(other, starts) ?? own), own);
  const late = own - earliest;
  return late <= MAX_GAP_SECONDS ? late : 0;
}

/** Undefined where nothing is known of it. */
function startSeconds({ id, timescale, edits, isTabled }: TrackClock, starts: FragmentStarts): number | undefined {
  if (isTabled) return 0;
  const ticks = starts.get(id);
  if (ticks === undefined || timescale <= 0) return undefined;
  // Pictures are decoded before they are played, and a list that cuts the difference off puts the first of them back to
  // where it belongs.
  const list = edits?.kind === 'edits' ? edits : undefined;
  const first = list?.edits.findIndex(({ mediaTime }) => mediaTime >= 0) ?? -1;
  if (!list || first < 0) return ticks / timescale;
  const emptySeconds =
    list.edits.slice(0, first).reduce((sum, { duration }) => sum + duration, 0) / list.movieTimescale;
  return emptySeconds + Math.max(0, ticks - list.edits[first].mediaTime) / timescale;
}

/** What holds for packets of a track where a fragment says nothing (`trex`). */
export interface FragmentDefaults {
  /** Number of the packets' description, from 1. */
  readonly description: number;
  readonly duration: number;
  readonly size: number;
}

export interface FragmentWalk {
  readonly trackId: number;
  readonly timescale: number;
  readonly defaults: FragmentDefaults;
  /** Where fragments may begin: after the index. */
  readonly firstByte: number;
  /** Bytes of one sample frame of uncompressed sound; else 0. */
  readonly pcmFrameBytes: number;
  /** Descriptions whose packets are left out (`readDescriptions`); absent where all have the same. */
  readonly others?: readonly number[];
  /**
   * Packets in front of the fragments, by tables. Entries count on from there: a fragment's is this and its place in
   * the file.
   */
  readonly tabled: number;
}

/** Flag of `tfhd`: a place in the file that packets are counted from. */
const HAS_BASE = 0x01;

/** Sample frames of one packet of uncompressed sound, where the fragment has a packet for each. */
const PCM_FRAMES = 4096;

/** Packets of one run. A fragment may claim any number of them, so that they are never held together. */
const MAX_RUN_PACKETS = 1024;

/**
 * The packets of one track from an entry on, or from the first fragment (ISO/IEC 14496-12 §8.8). Packets that are not
 * in the file are left out, and with them the rest of their fragment.
 */
export async function* walkFragments(
  reader: BlockReader,
  walk: FragmentWalk,
  entry: number,
  faults: FragmentFaults,
): PacketWalk {
  const from = Math.max(walk.firstByte, entry - walk.tabled);
  let isWhole = true;
  for await (const { box, isOfAnother } of fragmentsOf(reader, from, faults)) {
    // What a fragment lacks is the end of the file only in the last one.
    if (!isWhole) faults.isDamaged = true;
    const body = await readBody(reader, box, MAX_MOOF_BYTES);
    if (isOfAnother && countsFromFileStart(body)) {
      faults.hasAnother = true;
      break;
    }
    isWhole = yield* fragmentRuns(body, box, walk, reader.sizeBytes, faults);
  }
  if (!isWhole) faults.isCut = true;
}

/** Fragments looked at to see when each track begins. */
const FIRST_FRAGMENTS = 4;

/** When each track begins, by the first fragments. */
export async function fragmentStarts(reader: BlockReader, walk: FragmentWalk, tracks: number): Promise<FragmentStarts> {
  const starts: FragmentStarts = new Map();
  let fragments = 0;
  for await (const { box } of fragmentsOf(reader, walk.firstByte, {})) {
    const body = await readBody(reader, box, MAX_MOOF_BYTES);
    for (const _ of fragmentRuns(body, box, walk, reader.sizeBytes, {}, starts));
    if (starts.size >= tracks || ++fragments >= FIRST_FRAGMENTS) break;
  }
  return starts;
}

/** Whether a fragment says where its packets lie in bytes from the start of its file. */
function countsFromFileStart(body: Uint8Array): boolean {
  for (const traf of boxesIn(body)) {
    const header = traf.type === 'traf' ? findBox(body, 'tfhd', traf.bodyStart, traf.end) : undefined;
    if (header && header.length >= 8 && u32be(header, 0) & HAS_BASE) return true;
  }
  return false;
}

/**
 * The packets of the track in one fragment, the first with an entry.
 *
 * @returns whether it is whole: false where a packet is not in the file
 */
function* fragmentRuns(
  body: Uint8Array,
  moof: Box,
  walk: FragmentWalk,
  fileBytes: number,
  faults: FragmentFaults,
  starts?: FragmentStarts,
): Generator<PacketRun, boolean> {
  let entry: number | undefined = walk.tabled + moof.start;
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
        const isOfTrack = header.trackId === walk.trackId;
        const isWanted = isOfTrack && !walk.others?.includes(header.description);
        if (isOfTrack && !isWanted) faults.hasOthers = true;
        const pcmFrameBytes = isWanted ? walk.pcmFrameBytes : 0;
        const place = { offset: dataEnd, ticks, timescale: walk.timescale, fileBytes, pcmFrameBytes };
        const run = new TrackRun(view, header, place);
        if (starts && run.startTicks !== undefined) noteStart(starts, header.trackId, run.startTicks);
        if (!isWanted) run.pass();
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
  const base = field(HAS_BASE, 8);
  const description = field(0x02, 4) ?? walk.defaults.description;
  const duration = field(0x08, 4) ?? walk.defaults.duration;
  const size = field(0x10, 4) ?? walk.defaults.size;
  return { trackId, description, duration, size, baseOffset: base ?? (flags & 0x20000 ? moofStart : dataEnd) };
}

interface RunPlace {
  readonly offset: number;
  readonly ticks: number | undefined;
  readonly timescale: number;
  readonly fileBytes: number;
  readonly pcmFrameBytes: number;
}

/** One `trun`: packets that lie one after another. */
class TrackRun {
  /** Where the next packet lies. */
  offset: number;
  /** When it begins, where the fragment says that. */
  ticks: number | undefined;
  /** When the first packet is played; undefined where there is none, or the fragment does not say. */
  readonly startTicks: number | undefined;
  /** Whether a packet is not in the file. */
  isCut = false;
  readonly #flags: number;
  readonly #entryBytes: number;
  readonly #sizeAt: number;
  /** Bytes of each packet, where the run does not say them one by one. */
  readonly #packetBytes: number;
  /** Packets that are taken together, at most. */
  readonly #perStep: number;
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
    // Uncompressed sound, a packet for each sample frame: some writers say that it has 1 byte, as in tables.
    const isByFrames = this.#entryBytes === 0 && header.size > 0 && header.size <= place.pcmFrameBytes;
    this.#packetBytes = isByFrames ? place.pcmFrameBytes : header.size;
    this.#perStep = isByFrames ? PCM_FRAMES : 1;
    if (view.length < 8) return;
    // A count without entries is bounded by the bytes that are there; packets of no bytes are none.
    const room =
      this.#entryBytes > 0
        ? Math.floor((view.length - this.#at) / this.#entryBytes)
        : this.#packetBytes > 0
          ? Math.floor(place.fileBytes / this.#packetBytes)
          : 0;
    this.#left = Math.min(u32be(view, 4), Math.max(0, room));
    if (this.#left === 0 || place.ticks === undefined) return;
    const delayAt = fields.indexOf(0x800);
    // Above 0 mostly; the second version of the box allows less, and no delay is so long that the sign could be meant
    // otherwise.
    this.startTicks = place.ticks + (delayAt < 0 ? 0 : u32be(view, this.#at + 4 * delayAt) | 0);
  }

  get endSeconds(): number | undefined {
    return this.#secondsOf(this.ticks);
  }

  /** The next packets, not more than a run may have; none at the end. */
  next(): RawPacket[] {
    const packets: RawPacket[] = [];
    // All of one size, and that too long: none of them is a packet, and there may be hundreds for each box of 20 bytes.
    if (!(this.#flags & 0x200) && this.#packetBytes > MAX_PACKET_BYTES) this.pass();
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
    const bytes = this.#flags & 0x200 ? u32be(view, this.#at + this.#sizeAt) : this.#packetBytes;
    const duration = this.#flags & 0x100 ? u32be(view, this.#at) : header.duration;
    const inFile = Math.floor((this.place.fileBytes - offset) / Math.max(1, bytes));
    this.isCut = offset < 0 || offset > this.place.fileBytes || inFile < 1;
    if (this.isCut) return undefined;
    const count = Math.min(this.#perStep, this.#left, inFile);
    const length = count * bytes;
    this.#left -= count;
    this.#at += this.#entryBytes;
    this.offset += length;
    if (ticks !== undefined) this.ticks = ticks + count * duration;
    return length <= MAX_PACKET_BYTES ? { offset, length, seconds: this.#secondsOf(ticks) } : undefined;
  }

  #secondsOf(ticks: number | undefined): number | undefined {
    return ticks === undefined || this.place.timescale <= 0 ? undefined : ticks / this.place.timescale;
  }
}
