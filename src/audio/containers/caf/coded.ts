import type { BlockReader } from '../../block-reader.ts';
import { hasAscii, toHex } from '../../bytes.ts';
import { aacTrack } from '../../packets/aac.ts';
import { alacTrack } from '../../packets/alac.ts';
import { decoderConfig } from '../../packets/mpeg4-descriptor.ts';
import { OPUS_RATE_HZ } from '../../packets/opus.ts';
import type { PacketIndex, TrackCodec } from '../../packets/packet.ts';
import { onePiece } from '../../packets/pieces.ts';
import { type Played, probeTrack } from '../../packets/probe-track.ts';
import { readPackets } from '../../packets/read.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { type SeekTable, SeekTableBuilder } from '../../seek-table.ts';
import type { DecoderPort } from '../../types.ts';
import { opusHeadOf } from '../mpeg-ts/opus.ts';
import { type CafHeader, type CafPacketTable, TRUNCATED_WARNING } from './header.ts';
import { MARK_BYTES, type PacketPlaces, walkFrom, walkFromStart } from './packets.ts';

/** ALAC, AAC or Opus in packets whose lengths are in a table. */
export interface CafCodedIndex extends PacketIndex {
  readonly format: 'caf';
  readonly codec: 'alac' | 'aac' | 'opus';
  readonly places: PacketPlaces;
  readonly marks: SeekTable;
}

const WHERE = 'The Core Audio file';

/** What a decoder needs, by coding. */
const TRACK_OF = { alac: alacOf, aac: aacOf, opus: opusOf };

/** Measures a file that holds ALAC, AAC or Opus. */
export async function probeCoded(
  reader: BlockReader,
  header: CafHeader,
  codec: CafCodedIndex['codec'],
  decoders: DecoderPort,
): Promise<AudioResult<CafCodedIndex>> {
  const { packetTable: table, dataOffset, dataBytes, warning } = header;
  if (!table) return fail('corrupt', `${WHERE} has no table of its packets.`);
  const track = TRACK_OF[codec](header);
  if (!track.ok) return track;
  const places = { table, dataOffset, dataEndByte: dataOffset + dataBytes };
  const marks = new SeekTableBuilder(MARK_BYTES);
  const probed = await probeTrack(reader, decoders, {
    where: WHERE,
    track: track.value,
    walk: () => walkFromStart(reader, places, marks),
    played: (scan, rateHz) => playedRange(table, scan.endPosition, rateHz / header.description.sampleRateHz),
    isCut: (scan) => scan.packets < table.packets,
    warnings: () => (warning === undefined || warning === TRUNCATED_WARNING ? [] : [warning]),
  });
  return probed.ok ? ok({ ...probed.value, format: 'caf', codec, places, marks: marks.build() }) : probed;
}

/** Mono samples `[startSample, totalSamples)`. */
export function readCoded(
  reader: BlockReader,
  index: CafCodedIndex,
  decoders: DecoderPort,
  startSample: number,
): AsyncGenerator<Float32Array> {
  return readPackets(reader, index, decoders, startSample, (entry) =>
    walkFrom(reader, index.places, index.marks, entry),
  );
}

/** Valid and priming frames count at the rate of the description; the decoder's may be higher: twice as high for AAC, 48 kHz for Opus. */
function playedRange(table: CafPacketTable, decoded: number, scale: number): Played {
  const startPosition = Math.min(Math.max(0, Math.round(table.primingFrames * scale)), decoded);
  const valid = Math.round(table.validFrames * scale);
  const endPosition = valid > 0 ? Math.min(startPosition + valid, decoded) : decoded;
  return { pieces: onePiece(startPosition, endPosition) };
}

/** An ALAC cookie is the bare configuration, or wrapped in the atoms that QuickTime put around it. */
function alacOf({ cookie, description }: CafHeader): AudioResult<TrackCodec> {
  const at = hasAscii(cookie, 4, 'frma') ? 24 : hasAscii(cookie, 4, 'alac') ? 12 : 0;
  const track = alacTrack(cookie.subarray(at));
  if (!track) return fail('corrupt', `${WHERE} has a damaged header of its ALAC track.`);
  return ok({ ...track, sampleRateHz: description.sampleRateHz });
}

function aacOf({ cookie, description }: CafHeader): AudioResult<TrackCodec> {
  const found = decoderConfig(cookie);
  return aacTrack(found?.privateData ?? new Uint8Array(0), description.channels, WHERE);
}

/** As voice messages of phones hold it. How the channels of more than two are mixed is in a cookie whose layout nobody tells. */
function opusOf({ description: { channels } }: CafHeader): AudioResult<TrackCodec> {
  if (channels > 2) {
    return fail('unsupported', `${WHERE} holds Opus with ${channels} channels, which is not supported.`);
  }
  return ok({ codec: 'opus', sampleRateHz: OPUS_RATE_HZ, channels, extraData: toHex(opusHeadOf(channels)) });
}
