import type { BlockReader } from '../block-reader.ts';
import { u16be, u32be } from '../bytes.ts';
import type { ConstantDuration, PacketWalk, RawPacket } from '../container.ts';
import type { AmrFamily } from './amr.ts';

interface Table {
  readonly offset: number;
  readonly count: number;
}

/** Positions of the tables of one track in the file (ISO/IEC 14496-12 §8.6, 8.7). Plain JSON. */
export interface SampleTables {
  readonly times: Table;
  readonly runs: Table;
  readonly sizes: Table & { readonly constant: number; readonly fieldBits: number };
  readonly chunks: Table & { readonly isLong: boolean };
}

/** Table entries in one read. */
const BATCH_ENTRIES = 4096;
/** Packets of one run. */
const MAX_RUN = 1024;
/** Successive entries of the table of chunks without packets; with more the table is damaged. */
const MAX_EMPTY_RUNS = 100;
/** Total of entries of the table of times without packets; after more the times are ignored. */
const MAX_EMPTY_TIMES = 200_000;
/** Total of packets of other descriptions; a day at 96 kHz has fewer. */
const MAX_OTHER_PACKETS = 10_000_000;
/** Sample frames of one packet of uncompressed audio. */
const PCM_FRAMES = 4096;

export interface SampleWalk {
  readonly tables: SampleTables;
  readonly timescale: number;
  /** Bytes of one sample frame of uncompressed audio, if the tables have a packet for each; otherwise 0. */
  readonly pcmFrameBytes: number;
  /** Descriptions whose packets are left out (`readDescriptions`); absent if all have the same coding. */
  readonly excludedDescriptions?: readonly number[];
}

/** Faults and facts that a walk found. */
export type TableFaults = {
  /** Number after the last packet that is in the file. */
  tableEnd?: number;
  /** Whether packets of another description were left out. */
  hasOthers?: boolean;
};

/**
 * The packets of a track from number `from`, from its tables. The tables are not kept in memory, so that the memory
 * does not depend on the length of the recording. Ends at a packet that is not in the file, or when the packets of
 * other descriptions have more bytes than the file.
 */
export async function* walkSamples(
  reader: BlockReader,
  walk: SampleWalk,
  from: number,
  faults: TableFaults,
): PacketWalk {
  const { tables, pcmFrameBytes } = walk;
  const chunkOffset = chunkOffsets(reader, tables.chunks);
  const sizeOf = packetSizes(reader, tables.sizes);
  const times = new PacketTimes(reader, tables.times, walk.timescale);
  await times.advance(from);
  let packet = 0;
  let otherPackets = 0;
  let otherBytes = 0;
  for await (const { firstChunk, endChunk, perChunk, description } of chunkRuns(reader, tables)) {
    const isOther = walk.excludedDescriptions?.includes(description) === true;
    const skipped = Math.min(endChunk - firstChunk, Math.max(0, Math.floor((from - packet) / perChunk)));
    packet += skipped * perChunk;
    for (let chunk = firstChunk + skipped; chunk < endChunk; chunk++) {
      const end = Math.min(packet + perChunk, tables.sizes.count);
      let offset = await chunkOffset(chunk);
      let packets: RawPacket[] = [];
      while (packet < end) {
        const frames = pcmFrameBytes > 0 ? Math.min(PCM_FRAMES, end - packet) : 1;
        const length = pcmFrameBytes > 0 ? frames * pcmFrameBytes : await sizeOf(packet);
        if (offset + length > reader.sizeBytes) {
          if (packets.length > 0) yield { packets };
          return;
        }
        if (packet >= from) {
          const seconds = await times.advance(frames);
          const constantDuration = frames === 1 ? times.constantDuration : undefined;
          if (!isOther) packets.push({ offset, length, entry: packet, seconds, constantDuration });
          else {
            faults.hasOthers = true;
            otherBytes += length;
            if (++otherPackets > MAX_OTHER_PACKETS || otherBytes > reader.sizeBytes) return;
          }
        }
        packet += frames;
        offset += length;
        faults.tableEnd = packet;
        if (packets.length < MAX_RUN) continue;
        yield { packets, endSeconds: times.endSeconds };
        packets = [];
      }
      if (packets.length > 0) yield { packets, endSeconds: times.endSeconds };
      if (packet >= tables.sizes.count) return;
    }
  }
}

/** Runs of chunks (numbers from 0) with the same number of packets each. */
async function* chunkRuns(reader: BlockReader, { runs, chunks }: SampleTables) {
  let before: { firstChunk: number; perChunk: number; description: number } | undefined;
  let empty = 0;
  for (let run = 0; run <= runs.count; run++) {
    const view = run < runs.count ? await reader.peekTable(runs.offset + 12 * run, 12) : undefined;
    if (view && view.length < 12) return;
    // Copied now: the consumer of a run uses the reader, which invalidates the view.
    const firstChunk = view ? u32be(view, 0) - 1 : chunks.count;
    const perChunk = view ? u32be(view, 4) : 0;
    const description = view ? u32be(view, 8) : 0;
    const endChunk = Math.min(firstChunk, chunks.count);
    if (before && before.perChunk > 0 && endChunk > before.firstChunk) {
      empty = 0;
      yield { ...before, endChunk };
    } else if (++empty > MAX_EMPTY_RUNS) return;
    before = { firstChunk: Math.max(0, firstChunk), perChunk, description };
  }
}

/** Fields of a table by number, read in batches for ascending numbers. */
function batched(reader: BlockReader, offset: number, count: number, bits: number, read: FieldReader) {
  let view = new Uint8Array(0);
  let first = 0;
  let end = 0;
  return async (at: number): Promise<number> => {
    if (at < first || at >= end) {
      first = at - (at % 2);
      end = Math.min(first + BATCH_ENTRIES, count);
      const bytes = Math.ceil(((end - first) * bits) / 8);
      view = (await reader.peekTable(offset + (first * bits) / 8, bytes)).slice(0, bytes);
    }
    return read(view, at - first) || 0;
  };
}

type FieldReader = (view: Uint8Array, at: number) => number;

const chunkOffsets = (reader: BlockReader, { offset, count, isLong }: SampleTables['chunks']) =>
  batched(reader, offset, count, isLong ? 64 : 32, (view, at) =>
    isLong ? u32be(view, 8 * at) * 2 ** 32 + u32be(view, 8 * at + 4) : u32be(view, 4 * at),
  );

const SIZE_FIELDS: Readonly<Record<number, FieldReader>> = {
  4: (view, at) => (at % 2 === 0 ? view[at >> 1] >> 4 : view[at >> 1] & 15),
  8: (view, at) => view[at],
  16: (view, at) => u16be(view, 2 * at),
  32: (view, at) => u32be(view, 4 * at),
};

function packetSizes(reader: BlockReader, { offset, count, constant, fieldBits }: SampleTables['sizes']) {
  if (constant > 0) return () => constant;
  return batched(reader, offset, count, fieldBits, SIZE_FIELDS[fieldBits]);
}

/** Times of the packets in order. */
class PacketTimes {
  /** End of the last packet; undefined after the end of the table. */
  endSeconds: number | undefined;
  /** The table entry of the last packet, if it covers several packets. */
  constantDuration: ConstantDuration | undefined;
  #entry = 0;
  #left = 0;
  #delta = 0;
  #ticks = 0;
  #empty = 0;

  constructor(
    private readonly reader: BlockReader,
    private readonly table: Table,
    private readonly timescale: number,
  ) {}

  /** Start of the next packet. @param entries to advance by: merged packets of uncompressed audio have many */
  async advance(entries: number): Promise<number | undefined> {
    this.endSeconds = undefined;
    let seconds: number | undefined;
    for (let left = entries; left > 0; ) {
      if (this.#left === 0) this.constantDuration = undefined;
      while (this.#left === 0) {
        if (this.#entry >= this.table.count || this.timescale <= 0 || this.#empty > MAX_EMPTY_TIMES) return undefined;
        const view = await this.reader.peekTable(this.table.offset + 8 * this.#entry++, 8);
        if (view.length < 8) return undefined;
        this.#left = u32be(view, 0);
        if (this.#left === 0) this.#empty++;
        this.#delta = u32be(view, 4);
        if (this.#left > 1)
          this.constantDuration = { ticks: this.#delta, timescale: this.timescale, packets: this.#left };
      }
      seconds ??= this.#ticks / this.timescale;
      const passed = Math.min(left, this.#left);
      this.#ticks += this.#delta * passed;
      this.#left -= passed;
      left -= passed;
    }
    this.endSeconds = this.#ticks / this.timescale;
    return seconds;
  }
}

/**
 * Limit of the bytes of all packets, in sizes of the file. Writers use no byte twice; a few hostile boxes could use the
 * same bytes millions of times.
 */
const MAX_REUSE = 2;

/** State of the limit. */
export type Reuse = {
  /** Whether packets were left out, because earlier ones reached the limit. */
  isEndless?: boolean;
  /** Bytes of the packets before the first one of the walk. */
  passedBytes?: number;
};

/** The packets of a walk up to the limit of reused bytes; ends at the same packet for any start of the walk. */
export async function* withoutReuse(walk: PacketWalk, fileBytes: number, reuse: Reuse): PacketWalk {
  let left = MAX_REUSE * fileBytes - (reuse.passedBytes ?? 0);
  for await (const run of walk) {
    const end = run.packets.findIndex(({ length }) => {
      left -= length;
      return left < 0;
    });
    reuse.isEndless = end >= 0;
    if (end > 0) yield { packets: run.packets.slice(0, end) };
    if (end >= 0) return;
    yield run;
  }
}

/** Frames of one run: bounds the memory, because a file may claim samples of any size. */
const MAX_RUN_FRAMES = 1024;

/** The frames of AMR samples with several frames (3GPP TS 26.244 §6.7): a decoder takes one frame at a time. */
export async function* amrFrames(reader: BlockReader, walk: PacketWalk, { frameBytes }: AmrFamily): PacketWalk {
  for await (const { packets, endSeconds } of walk) {
    let frames: RawPacket[] = [];
    for (const packet of packets) {
      let at = 0;
      do {
        const [header = 0] = await reader.peek(packet.offset + at, 1);
        const left = packet.length - at;
        // After an invalid frame type the rest is one damaged frame.
        const length = Math.min(frameBytes[(header >> 3) & 15] || left, left);
        frames.push(at === 0 ? { ...packet, length } : { offset: packet.offset + at, length });
        at += length;
        if (frames.length < MAX_RUN_FRAMES) continue;
        yield { packets: frames };
        frames = [];
      } while (at < packet.length);
    }
    yield { packets: frames, endSeconds };
  }
}
