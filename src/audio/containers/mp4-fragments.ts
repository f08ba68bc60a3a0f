import { type BlockReader, skipZeros } from '../block-reader.ts';
import { hasAscii, u32be } from '../bytes.ts';
import { MAX_GAP_SECONDS } from '../clock.ts';
import { MAX_PACKET_BYTES, type PacketRun, type PacketWalk, type RawPacket } from '../container.ts';
import { type Box, boxesIn, boxesOf, type EditList, findBox, MAX_BOXES, readBody } from './mp4-boxes.ts';

/** A `moof` box describes some seconds; one of this size would be an hour. */
const MAX_MOOF_BYTES = 4 << 20;

/** Faults that a walk over fragments found. */
export type FragmentFaults = {
  /** Whether the file ends inside a fragment. */
  isCut?: boolean;
  /** Whether bytes were skipped before later fragments, or instead of them. */
  isDamaged?: boolean;
  /** Whether another file with similar fragments was appended. */
  hasAnother?: boolean;
  /** Whether packets of another description were left out. */
  hasOthers?: boolean;
};

/** The head of one fragment. */
interface Fragment {
  readonly box: Box;
  /** Whether it follows another index: its file offsets count from the start of another file. */
  readonly isOfAppendedFile: boolean;
}

/** Bytes after damage that are searched for the next fragment. */
const MAX_SEARCH_BYTES = 64 << 20;
/** Damaged spans in one walk. */
const MAX_DAMAGES = 1000;
/** Bytes after the last box that may be a tag or padding. */
const MAX_TAIL_BYTES = 4096;
/** Types of boxes are printable. Zeros would parse as a box up to the end of the file. */
const IS_TYPE = /^[\x20-\x7e]{4}$/;
/** Head of a fragment: its first box is its number, of 16 bytes. */
const SIGNATURE_BYTES = 16;

/** The complete `moof` boxes from `from`. After an invalid box it continues at the next fragment. */
async function* fragmentsOf(reader: BlockReader, from: number, faults: FragmentFaults): AsyncGenerator<Fragment> {
  const end = reader.sizeBytes;
  let position = from;
  let boxes = 0;
  let isOfAppendedFile = false;
  for (let damages = 0; damages <= MAX_DAMAGES; damages++) {
    let cut: string | undefined;
    for await (const box of boxesOf(reader, position, end)) {
      const isFragment = box.type === 'moof';
      boxes++;
      if (box.isCut) cut = box.type;
      if (box.isCut || !IS_TYPE.test(box.type) || (isFragment && box.end - box.start > MAX_MOOF_BYTES)) break;
      if (isFragment) yield { box, isOfAppendedFile };
      isOfAppendedFile ||= box.type === 'moov';
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

/** Position of the next possible start of a fragment. */
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

/** Facts that determine the start time of a track. */
export interface TrackClock {
  readonly id: number;
  readonly timescale: number;
  readonly edits: EditList | undefined;
  /** Whether the index has packets of it in tables: these come first, and begin at 0. */
  readonly isTabled: boolean;
}

/** Time of each track's first packet in the fragments, in units of the track, by track number. */
export type FragmentStarts = Map<number, number>;

/** Tracks whose start is noted; a fragment may claim any number of tracks. */
const MAX_TRACKS = 100;

/** @param ticks presentation time of the first packet of a fragment */
function noteStart(starts: FragmentStarts, trackId: number, ticks: number): void {
  if (!starts.has(trackId) && starts.size < MAX_TRACKS) starts.set(trackId, ticks);
}

/**
 * Seconds by which a track begins later than the earliest of its file. The times of a recording that was cut out of a
 * live stream begin anywhere, the same for all tracks: so only the difference counts.
 */
export function lateSeconds(track: TrackClock, all: readonly TrackClock[], starts: FragmentStarts): number {
  const own = startSeconds(track, starts);
  if (own === undefined) return 0;
  const earliest = all.reduce((least, other) => Math.min(least, startSeconds(other, starts) ?? own), own);
  const late = own - earliest;
  return late <= MAX_GAP_SECONDS ? late : 0;
}

/** Start time of a track; undefined if unknown. */
function startSeconds({ id, timescale, edits, isTabled }: TrackClock, starts: FragmentStarts): number | undefined {
  if (isTabled) return 0;
  const ticks = starts.get(id);
  if (ticks === undefined || timescale <= 0) return undefined;
  // Video is decoded before it is played; an edit list that cuts the difference moves the start back.
  const list = edits?.kind === 'edits' ? edits : undefined;
  const first = list?.edits.findIndex(({ mediaTime }) => mediaTime >= 0) ?? -1;
  if (!list || first < 0) return ticks / timescale;
  const emptySeconds =
    list.edits.slice(0, first).reduce((sum, { duration }) => sum + duration, 0) / list.movieTimescale;
  return emptySeconds + Math.max(0, ticks - list.edits[first].mediaTime) / timescale;
}

/** Default values for the packets of a track (`trex`). */
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
  /** Start of the fragments: the end of the index. */
  readonly firstByte: number;
  /** Bytes of one sample frame of uncompressed audio; otherwise 0. */
  readonly pcmFrameBytes: number;
  /** Descriptions whose packets are left out (`readDescriptions`); absent if all have the same coding. */
  readonly excludedDescriptions?: readonly number[];
  /** Number of packets in tables before the fragments. The entry of a fragment is this number plus its file offset. */
  readonly tabled: number;
}

/** Flag of `tfhd`: the base file offset of the packets is stated. */
const HAS_BASE = 0x01;

/** Sample frames that are merged into one packet, if the fragment has a packet for each sample frame. */
const PCM_FRAMES = 4096;

/** Packets of one run: bounds the memory, because a fragment may claim any number of them. */
const MAX_RUN_PACKETS = 1024;

/**
 * The packets of one track from an entry, or from the first fragment (ISO/IEC 14496-12 §8.8). A packet that is not in
 * the file ends its fragment.
 */
export async function* walkFragments(
  reader: BlockReader,
  walk: FragmentWalk,
  entry: number,
  faults: FragmentFaults,
): PacketWalk {
  const from = Math.max(walk.firstByte, entry - walk.tabled);
  let isComplete = true;
  for await (const { box, isOfAppendedFile } of fragmentsOf(reader, from, faults)) {
    // Only in the last fragment do missing packets mean that the file is truncated.
    if (!isComplete) faults.isDamaged = true;
    const body = await readBody(reader, box, MAX_MOOF_BYTES);
    if (isOfAppendedFile && countsFromFileStart(body)) {
      faults.hasAnother = true;
      break;
    }
    isComplete = yield* fragmentRuns(body, box, walk, reader.sizeBytes, faults);
  }
  if (!isComplete) faults.isCut = true;
}

/** Fragments that are searched for the start of each track. */
const FIRST_FRAGMENTS = 4;

/** Start of each track, from the first fragments. */
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

/** Whether a fragment states the positions of its packets from the start of its file. */
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
 * @returns false if a packet is not in the file
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
  /** End of the data of the previous track fragment: default start of the next. */
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
        const isWanted = isOfTrack && !walk.excludedDescriptions?.includes(header.description);
        if (isOfTrack && !isWanted) faults.hasOthers = true;
        const pcmFrameBytes = isWanted ? walk.pcmFrameBytes : 0;
        const start = { offset: dataEnd, ticks, timescale: walk.timescale, fileBytes, pcmFrameBytes };
        const run = new TrackRun(view, header, start);
        if (starts && run.startTicks !== undefined) noteStart(starts, header.trackId, run.startTicks);
        if (!isWanted) run.skipAll();
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

interface RunStart {
  readonly offset: number;
  readonly ticks: number | undefined;
  readonly timescale: number;
  readonly fileBytes: number;
  readonly pcmFrameBytes: number;
}

/** One `trun`: contiguous packets. */
class TrackRun {
  /** File offset of the next packet. */
  offset: number;
  /** Decode time of the next packet, if the fragment states it. */
  ticks: number | undefined;
  /** Presentation time of the first packet; undefined without packets, or if the fragment does not state it. */
  readonly startTicks: number | undefined;
  /** Whether a packet is not in the file. */
  isCut = false;
  readonly #flags: number;
  readonly #entryBytes: number;
  readonly #sizeAt: number;
  /** Bytes of each packet, if the run does not state them one by one. */
  readonly #packetBytes: number;
  /** Maximum number of packets that are merged into one. */
  readonly #perStep: number;
  #at = 8;
  #left = 0;

  constructor(
    private readonly view: Uint8Array,
    private readonly header: TrackFragment,
    private readonly start: RunStart,
  ) {
    this.offset = start.offset;
    this.ticks = start.ticks;
    this.#flags = view.length < 8 ? 0 : u32be(view, 0);
    if (this.#flags & 0x01 && view.length >= 12) {
      this.offset = header.baseOffset + (u32be(view, this.#at) | 0);
      this.#at += 4;
    }
    if (this.#flags & 0x04) this.#at += 4;
    const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => this.#flags & flag);
    this.#entryBytes = 4 * fields.length;
    this.#sizeAt = 4 * fields.indexOf(0x200);
    // Uncompressed audio with a packet for each sample frame: some writers state a size of 1 byte, as in tables.
    const isByFrames = this.#entryBytes === 0 && header.size > 0 && header.size <= start.pcmFrameBytes;
    this.#packetBytes = isByFrames ? start.pcmFrameBytes : header.size;
    this.#perStep = isByFrames ? PCM_FRAMES : 1;
    if (view.length < 8) return;
    // A count without entries is bounded by the bytes of the file; packets without bytes are ignored.
    const room =
      this.#entryBytes > 0
        ? Math.floor((view.length - this.#at) / this.#entryBytes)
        : this.#packetBytes > 0
          ? Math.floor(start.fileBytes / this.#packetBytes)
          : 0;
    this.#left = Math.min(u32be(view, 4), Math.max(0, room));
    if (this.#left === 0 || start.ticks === undefined) return;
    const delayAt = fields.indexOf(0x800);
    // The second version of the box allows negative delays. In the first no delay is long enough to set the sign bit.
    this.startTicks = start.ticks + (delayAt < 0 ? 0 : u32be(view, this.#at + 4 * delayAt) | 0);
  }

  get endSeconds(): number | undefined {
    return this.#secondsOf(this.ticks);
  }

  /** The next packets, up to the limit of a run; none at the end. */
  next(): RawPacket[] {
    const packets: RawPacket[] = [];
    // With a constant size above the limit none is a packet: skipping them one by one would take long.
    if (!(this.#flags & 0x200) && this.#packetBytes > MAX_PACKET_BYTES) this.skipAll();
    while (this.#left > 0 && !this.isCut && packets.length < MAX_RUN_PACKETS) {
      const packet = this.#step();
      if (packet) packets.push(packet);
    }
    return packets;
  }

  /** Skips the remaining packets, as for another track. */
  skipAll(): void {
    if (this.#entryBytes === 0) {
      this.offset += this.#left * this.header.size;
      if (this.ticks !== undefined) this.ticks += this.#left * this.header.duration;
      this.#left = 0;
    }
    while (this.#left > 0 && !this.isCut) this.#step();
  }

  /** The next packet; undefined if it is damaged or not in the file. */
  #step(): RawPacket | undefined {
    const { view, header, offset, ticks } = this;
    const bytes = this.#flags & 0x200 ? u32be(view, this.#at + this.#sizeAt) : this.#packetBytes;
    const duration = this.#flags & 0x100 ? u32be(view, this.#at) : header.duration;
    const inFile = Math.floor((this.start.fileBytes - offset) / Math.max(1, bytes));
    this.isCut = offset < 0 || offset > this.start.fileBytes || inFile < 1;
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
    return ticks === undefined || this.start.timescale <= 0 ? undefined : ticks / this.start.timescale;
  }
}
