import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import type { Part, Piece } from '../../container.ts';
import { aacTrack } from '../../packets/aac.ts';
import { alacTrack } from '../../packets/alac.ts';
import { decoderConfig } from '../../packets/mpeg4-descriptor.ts';
import { OPUS_RATE_HZ } from '../../packets/opus.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { openTrack } from '../../packets/track.ts';
import { onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { opusHeadOf } from '../mpeg-ts/opus.ts';
import { type CafHeader, type CafPacketTable, TRUNCATED_WARNING } from './header.ts';
import { walkPackets } from './packets.ts';

const WHERE = 'The Core Audio file';

export type CafCodec = 'alac' | 'aac' | 'opus';

/** What a decoder needs, by coding. */
const TRACK_OF = { alac: alacOf, aac: aacOf, opus: opusOf };

/** Opens a file that holds ALAC, AAC or Opus in packets whose lengths are in a table. */
export async function openCoded(
  reader: BlockReader,
  header: CafHeader,
  codec: CafCodec,
  decoders: DecoderPort,
): Promise<AudioResult<Part>> {
  const { packetTable: table, dataOffset, dataBytes, warning } = header;
  if (!table) return fail('corrupt', `${WHERE} has no table of its packets.`);
  const track = TRACK_OF[codec](header);
  if (!track.ok) return track;
  const places = { table, dataOffset, dataEndByte: dataOffset + dataBytes };
  const opened = await openTrack(reader, decoders, {
    format: 'caf',
    where: WHERE,
    track: track.value,
    walk: (_, entry) => walkPackets(reader, places, entry),
  });
  if (!opened.ok) return opened;
  const scale = opened.value.sampleRateHz / header.description.sampleRateHz;
  return ok({
    ...opened.value,
    heard: () => heardOf(table, scale),
    warnings: (_, { packets }) => [
      ...(packets < table.packets ? [`${WHERE} ends before it should; the part that is there was used.`] : []),
      ...(warning === undefined || warning === TRUNCATED_WARNING ? [] : [warning]),
    ],
  });
}

/**
 * Valid and priming frames count at the rate of the description; the decoder's may be higher: twice as high for AAC, 48
 * kHz for Opus.
 */
function heardOf(table: CafPacketTable, scale: number): readonly Piece[] {
  const from = Math.max(0, Math.round(table.primingFrames * scale));
  const valid = Math.round(table.validFrames * scale);
  return onePiece(from, valid > 0 ? from + valid : undefined);
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

/**
 * As voice messages of phones hold it. How the channels of more than two are mixed is in a cookie whose layout nobody
 * tells.
 */
function opusOf({ description: { channels } }: CafHeader): AudioResult<TrackCodec> {
  if (channels > 2) {
    return fail('unsupported', `${WHERE} holds Opus with ${channels} channels, which is not supported.`);
  }
  return ok({ codec: 'opus', sampleRateHz: OPUS_RATE_HZ, channels, extraData: opusHeadOf(channels) });
}
