import type { BlockReader } from '../../block-reader.ts';
import { u32be } from '../../bytes.ts';
import { MAX_PACKET_BYTES, type PacketWalk, type RawPacket } from '../../packets/packet.ts';
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

/** Packets of one run: an hour of sound, still little memory. */
const MAX_RUN_PACKETS = 1 << 18;

/** The packets of one track from the fragment at `from` on (ISO/IEC 14496-12 §8.8). Ends where a packet is not in the file. */
export async function* walkFragments(reader: BlockReader, walk: FragmentWalk, from: number): PacketWalk {
  for await (const box of boxesOf(reader, from, reader.sizeBytes)) {
    if (box.type !== 'moof' || box.end - box.start > MAX_MOOF_BYTES) continue;
    const packets: RawPacket[] = [];
    const body = await readBody(reader, box, MAX_MOOF_BYTES);
    const { isWhole, endSeconds } = readFragment(body, box, walk, reader.sizeBytes, packets);
    if (packets.length > 0) yield { packets: [{ ...packets[0], entry: box.start }, ...packets.slice(1)], endSeconds };
    if (!isWhole) return;
  }
}

/** Adds the packets of the track in one fragment to `out`; not whole when the file ends inside it. */
function readFragment(
  body: Uint8Array,
  moof: Box,
  walk: FragmentWalk,
  fileBytes: number,
  out: RawPacket[],
): { isWhole: boolean; endSeconds?: number } {
  let endSeconds: number | undefined;
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
        const run = readRun(view, header, { offset: dataEnd, ticks, timescale: walk.timescale, fileBytes });
        if (header.trackId === walk.trackId) {
          for (const packet of run.packets) out.push(packet);
          if (run.isCut) return { isWhole: false };
          if (run.ticks !== undefined && walk.timescale > 0) endSeconds = run.ticks / walk.timescale;
        }
        dataEnd = run.dataEnd;
        ticks = run.ticks;
      }
    }
  }
  return { isWhole: true, endSeconds };
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
function readRun(view: Uint8Array, header: TrackFragment, place: RunPlace) {
  const packets: RawPacket[] = [];
  let { offset, ticks } = place;
  if (view.length < 8) return { packets, dataEnd: offset, ticks, isCut: false };
  const flags = u32be(view, 0);
  let at = 8;
  if (flags & 0x01 && view.length >= 12) {
    offset = header.baseOffset + (u32be(view, at) | 0);
    at += 4;
  }
  if (flags & 0x04) at += 4;
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag);
  const entryBytes = 4 * fields.length;
  const sizeAt = 4 * fields.indexOf(0x200);
  // A count without entries is bounded by the bytes that are there: a packet has at least one.
  const room =
    entryBytes > 0 ? Math.floor((view.length - at) / entryBytes) : place.fileBytes / Math.max(1, header.size);
  const count = Math.min(u32be(view, 4), Math.max(0, Math.floor(room)), MAX_RUN_PACKETS);
  for (let i = 0; i < count; i++, at += entryBytes) {
    const length = flags & 0x200 ? u32be(view, at + sizeAt) : header.size;
    const duration = flags & 0x100 ? u32be(view, at) : header.duration;
    if (offset < 0 || offset + length > place.fileBytes) return { packets, dataEnd: offset, ticks, isCut: true };
    if (length <= MAX_PACKET_BYTES) {
      const seconds = ticks === undefined || place.timescale <= 0 ? undefined : ticks / place.timescale;
      packets.push({ offset, length, seconds });
    }
    offset += length;
    if (ticks !== undefined) ticks += duration;
  }
  return { packets, dataEnd: offset, ticks, isCut: false };
}
