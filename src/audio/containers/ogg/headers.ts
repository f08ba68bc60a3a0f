import type { BlockReader } from '../../block-reader.ts';
import { hasAscii, u16be } from '../../bytes.ts';
import { OPUS_RATE_HZ, parseOpusHead } from '../../packets/opus.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { parseVorbisIdentification, parseVorbisModes, vorbisPrivateData } from '../../packets/vorbis.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { parseStreamInfo, STREAM_INFO_BYTES } from '../flac/stream-info.ts';
import { PacketAssembler } from './packets.ts';
import { type PagesEnd, pagesOf } from './pages.ts';

export interface OggStream {
  readonly serial: number;
  readonly codec: TrackCodec;
  /** First page of its recording, which may have other streams. */
  readonly startByte: number;
  /** First page after the headers. */
  readonly firstByte: number;
}

/** Names for first packets of streams that are not decoded. */
const OTHERS: readonly (readonly [magic: string, name: string])[] = [
  ['Speex   ', 'Speex'],
  ['PCM     ', 'uncompressed samples'],
  ['CELT    ', 'CELT'],
];

const NOTHING = new Uint8Array(0);

type Kind = 'vorbis' | 'opus' | 'flac';

interface FirstPacket {
  readonly serial: number;
  readonly kind: Kind;
  readonly bytes: Uint8Array;
  readonly startByte: number;
}

/** Pages with headers; a picture in the comments takes many. */
const MAX_HEADER_PAGES = 1000;
const MAX_HEADER_PACKETS = 512;

/**
 * Finds the first audio stream at or behind `from`, and reads its headers. A recording that ends before its headers do
 * has no samples: the next one counts.
 */
export async function readStream(
  reader: BlockReader,
  from: number,
  end: PagesEnd = {},
): Promise<AudioResult<OggStream>> {
  let first: FirstPacket | undefined;
  let assembler: PacketAssembler | undefined;
  let other: string | undefined;
  let headers: Uint8Array[] = [];
  let pages = 0;
  let startByte = from;
  let isStart = false;
  for await (const page of pagesOf(reader, from, end)) {
    if (++pages > MAX_HEADER_PAGES) break;
    // All streams of a recording begin before any of them continues, each once.
    const isNext = page.isFirst && (!isStart || page.serial === first?.serial);
    if (isNext) startByte = page.start;
    isStart = page.isFirst;
    if (page.isFirst && (!first || isNext)) {
      const candidate = new PacketAssembler(page.serial, true);
      const bytes = (await candidate.add(reader, page))[0]?.bytes ?? new Uint8Array(0);
      const kind = kindOf(bytes);
      if (kind) {
        first = { serial: page.serial, kind, bytes, startByte };
        assembler = candidate;
        headers = [];
      } else other ??= OTHERS.find(([magic]) => hasAscii(bytes, 0, magic))?.[1];
    } else if (first && assembler && page.serial === first.serial) {
      const packets = (await assembler.add(reader, page)).map((packet) => packet.bytes ?? NOTHING);
      const isAudio = packets.some((packet) => first?.kind === 'flac' && packet[0] === 0xff);
      // Of the others only their number matters: comments with pictures may be too long to be kept.
      headers.push(...(first.kind === 'vorbis' ? packets : packets.map(() => NOTHING)));
      const isEnd = isAudio || headers.length >= headerPackets(first);
      if (isEnd) return finish(first, headers, isAudio ? page.start : page.end);
    }
  }
  if (first || end.isDamaged) return fail('corrupt', 'The headers of the OGG file are damaged.');
  return other
    ? fail('unsupported', `The OGG file holds audio in ${other}, which is not supported.`)
    : fail('no_samples', 'The OGG file has no audio track that is known.');
}

function kindOf(packet: Uint8Array): Kind | undefined {
  if (packet[0] === 1 && hasAscii(packet, 1, 'vorbis')) return 'vorbis';
  if (hasAscii(packet, 0, 'OpusHead')) return 'opus';
  if (packet[0] === 0x7f && hasAscii(packet, 1, 'FLAC')) return 'flac';
  return undefined;
}

/** Header packets after the first one. */
function headerPackets({ kind, bytes }: FirstPacket): number {
  if (kind === 'opus') return 1;
  if (kind === 'vorbis') return 2;
  return (bytes.length < 9 ? 0 : u16be(bytes, 7)) || MAX_HEADER_PACKETS;
}

function finish(first: FirstPacket, headers: readonly Uint8Array[], firstByte: number): AudioResult<OggStream> {
  const { serial, kind, bytes, startByte } = first;
  const damaged = fail('corrupt', 'The headers of the OGG file are damaged.');
  const stream = (sampleRateHz: number, channels: number, extraData: Uint8Array) =>
    ok({ serial, startByte, firstByte, codec: { codec: kind, sampleRateHz, channels, extraData: extraData.slice() } });
  switch (kind) {
    case 'opus': {
      const head = parseOpusHead(bytes);
      return head ? stream(OPUS_RATE_HZ, head.channels, bytes) : damaged;
    }
    case 'vorbis': {
      const identification = parseVorbisIdentification(bytes);
      const data = headers.length >= 2 ? vorbisPrivateData(bytes, headers[1]) : undefined;
      if (!identification || !data || !parseVorbisModes(data)) return damaged;
      return stream(identification.sampleRateHz, identification.channels, data);
    }
    case 'flac': {
      const data = bytes.subarray(17, 17 + STREAM_INFO_BYTES);
      if (data.length < STREAM_INFO_BYTES) return damaged;
      const info = parseStreamInfo(data);
      return stream(info.sampleRateHz, info.channels, data);
    }
  }
}
