import type { BlockReader } from '../../block-reader.ts';
import { ascii, hasAscii, i64be, u32be } from '../../bytes.ts';
import { type Box, boxesIn, boxesOf, childrenOf, findBox, readBody } from './boxes.ts';
import { type EditList, type GaplessComment, parseEdits, parseGaplessComment } from './edits.ts';
import type { TrackClock } from './fragment-starts.ts';
import type { FragmentDefaults } from './fragments.ts';
import type { SampleTables } from './sample-table.ts';

/** One track, as the `moov` box describes it. */
export interface Mp4Track {
  readonly id: number;
  readonly isEnabled: boolean;
  readonly timescale: number;
  /** Units of `timescale`, without what stands in fragments; 0 where it is not known. */
  readonly duration: number;
  /** Entries of `stsd`, with their headers. */
  readonly sampleEntries: readonly Uint8Array[];
  readonly tables: SampleTables | undefined;
  readonly edits: EditList | undefined;
}

export interface Movie {
  readonly audio: readonly Mp4Track[];
  readonly trackCount: number;
  /** Of a recording in fragments the clocks of all its tracks of sound and pictures; else empty. */
  readonly clocks: readonly TrackClock[];
  readonly isFragmented: boolean;
  readonly defaults: ReadonlyMap<number, FragmentDefaults>;
  readonly gapless: GaplessComment | undefined;
}

const MAX_TRACKS = 100;
/** Descriptions of one track; where sound was joined there are some. */
const MAX_ENTRIES = 64;
/** Bytes of the sample entries looked at; private data is short. */
const MAX_ENTRY_BYTES = 1 << 16;
const MAX_TAG_BYTES = 1 << 16;

/** Reads what of a `moov` box matters to sound. The tables of packets stay in the file. */
export async function readMovie(reader: BlockReader, moov: Box): Promise<Movie> {
  const audio: Mp4Track[] = [];
  const others: Box[] = [];
  const defaults = new Map<number, FragmentDefaults>();
  let movieTimescale = 0;
  let trackCount = 0;
  let isFragmented = false;
  let gapless: GaplessComment | undefined;
  for await (const box of boxesOf(reader, moov.bodyStart, moov.end)) {
    if (box.type === 'mvhd') movieTimescale = timescaleOf(await readBody(reader, box, 32));
    else if (box.type === 'trak' && ++trackCount <= MAX_TRACKS) {
      const track = await readTrack(reader, box, movieTimescale);
      if (track) audio.push(track);
      else others.push(box);
    } else if (box.type === 'mvex') {
      isFragmented = true;
      for (const trex of boxesInBody(await readBody(reader, box, MAX_TAG_BYTES), 'trex')) {
        if (trex.length < 24 || defaults.size >= MAX_TRACKS) continue;
        defaults.set(u32be(trex, 4), {
          description: u32be(trex, 8),
          duration: u32be(trex, 12),
          size: u32be(trex, 16),
        });
      }
    } else if (box.type === 'udta') gapless = await readGapless(reader, box);
  }
  const clocks = isFragmented ? await clocksOf(reader, audio, others, movieTimescale) : [];
  return { audio, trackCount, clocks, isFragmented, defaults, gapless };
}

async function clocksOf(
  reader: BlockReader,
  audio: readonly Mp4Track[],
  others: readonly Box[],
  movieTimescale: number,
): Promise<readonly TrackClock[]> {
  const clocks = audio.map(clockOf);
  for (const trak of others) {
    const pictures = await readTrack(reader, trak, movieTimescale, 'vide');
    if (pictures) clocks.push(clockOf(pictures));
  }
  return clocks;
}

export const clockOf = ({ id, timescale, edits, tables }: Mp4Track): TrackClock => ({
  id,
  timescale,
  edits,
  isTabled: tables !== undefined && tables.sizes.count > 0,
});

function* boxesInBody(body: Uint8Array, type: string): Generator<Uint8Array> {
  for (const box of boxesIn(body)) if (box.type === type) yield body.subarray(box.bodyStart, box.end);
}

/** Units a second, of `mvhd` and `mdhd`. */
const timescaleOf = (body: Uint8Array): number => (body.length < 24 ? 0 : u32be(body, body[0] === 1 ? 20 : 12));

/** Body of `mdhd`. */
function durationOf(body: Uint8Array): number {
  if (body.length < 24 || (body[0] === 1 && body.length < 32)) return 0;
  return body[0] === 1 ? Math.max(0, i64be(body, 24)) : u32be(body, 16);
}

/** @param handler what the track holds; undefined is returned for others */
async function readTrack(
  reader: BlockReader,
  trak: Box,
  movieTimescale: number,
  handler = 'soun',
): Promise<Mp4Track | undefined> {
  const inTrack = await childrenOf(reader, trak);
  const mdia = inTrack.get('mdia');
  const inMedia = mdia ? await childrenOf(reader, mdia) : undefined;
  const [mdhd, hdlr, minf] = ['mdhd', 'hdlr', 'minf'].map((type) => inMedia?.get(type));
  if (!mdhd || !hdlr || !minf || !hasAscii(await readBody(reader, hdlr, 12), 8, handler)) return undefined;
  const stbl = (await childrenOf(reader, minf)).get('stbl');
  const table = stbl ? await childrenOf(reader, stbl) : undefined;
  const stsd = table?.get('stsd');
  if (!table || !stsd) return undefined;
  const description = await readBody(reader, stsd, MAX_ENTRY_BYTES);
  const entries = [...boxesIn(description, 8)].slice(0, MAX_ENTRIES);
  const tkhd = inTrack.get('tkhd');
  const media = await readBody(reader, mdhd, 32);
  const header = tkhd ? await readBody(reader, tkhd, 24) : new Uint8Array(24);
  const edts = inTrack.get('edts');
  const elst = edts ? (await childrenOf(reader, edts)).get('elst') : undefined;
  return {
    id: header.length < 24 ? 0 : u32be(header, header[0] === 1 ? 20 : 12),
    isEnabled: (header[3] & 1) === 1,
    timescale: timescaleOf(media),
    duration: durationOf(media),
    sampleEntries: entries.map(({ start, end }) => description.subarray(start, end)),
    tables: await readTables(reader, table),
    edits: elst ? parseEdits(await readBody(reader, elst, MAX_TAG_BYTES), movieTimescale) : undefined,
  };
}

/** Where the tables lie, with counts that fit into their boxes. */
async function readTables(reader: BlockReader, table: ReadonlyMap<string, Box>): Promise<SampleTables | undefined> {
  const [stts, stsc, stsz] = [table.get('stts'), table.get('stsc'), table.get('stsz') ?? table.get('stz2')];
  const stco = table.get('stco') ?? table.get('co64');
  if (!stts || !stsc || !stsz || !stco) return undefined;
  const at = async (box: Box, entryBytes: number, headBytes = 8) => {
    const head = await readBody(reader, box, headBytes);
    const room = Math.floor((box.end - box.bodyStart - headBytes) / entryBytes);
    const count = head.length < headBytes ? 0 : Math.max(0, Math.min(u32be(head, headBytes - 4), room));
    return { offset: box.bodyStart + headBytes, count };
  };
  const sizeHead = await readBody(reader, stsz, 12);
  if (sizeHead.length < 12) return undefined;
  const isCompact = stsz.type === 'stz2';
  const constant = isCompact ? 0 : u32be(sizeHead, 4);
  const fieldBits = isCompact ? sizeHead[7] : 32;
  if (![4, 8, 16, 32].includes(fieldBits)) return undefined;
  const sizes = constant > 0 ? { offset: 0, count: u32be(sizeHead, 8) } : await at(stsz, fieldBits / 8, 12);
  return {
    times: await at(stts, 8),
    runs: await at(stsc, 12),
    sizes: { ...sizes, constant, fieldBits },
    chunks: { ...(await at(stco, stco.type === 'co64' ? 8 : 4)), isLong: stco.type === 'co64' },
  };
}

/** The tag `iTunSMPB`, deep inside the movie's user data. */
async function readGapless(reader: BlockReader, udta: Box): Promise<GaplessComment | undefined> {
  const meta = (await childrenOf(reader, udta)).get('meta');
  const ilst = meta ? (await childrenOf(reader, meta, 4)).get('ilst') : undefined;
  if (!ilst) return undefined;
  for await (const item of boxesOf(reader, ilst.bodyStart, ilst.end)) {
    if (item.type !== '----') continue;
    const body = await readBody(reader, item, MAX_TAG_BYTES);
    const name = findBox(body, 'name');
    const data = findBox(body, 'data');
    if (name && data && hasAscii(name, 4, 'iTunSMPB')) return parseGaplessComment(ascii(data, 8, data.length));
  }
  return undefined;
}
