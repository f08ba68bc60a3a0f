import { BlockReader, OutOfBounds } from './block-reader.ts';
import { type AudioIndex, CONTAINERS } from './registry.ts';
import { type AudioResult, fail } from './result.ts';
import { nameForeign, UNKNOWN } from './sniff.ts';
import { skipHeadTags } from './tags.ts';
import type { ByteSource, DecoderPort } from './types.ts';
import { skipZeros } from './zeros.ts';

/** Bytes behind the tags that detection looks at. */
const HEAD_BYTES = 1 << 16;
/** Zeros in front of sound, as recorders and broken tags leave them. */
const MAX_ZERO_BYTES = 4 << 20;
/** Other bytes in front of it: the rest of a tag that states too small a size, mostly a picture. */
const MAX_JUNK_BYTES = 1 << 20;
/** What a chain of the longest frames takes is looked at twice, so that none is cut in two. */
const JUNK_STEP_BYTES = HEAD_BYTES / 2;
/** Twice what the densest MP3 has. A few frames by chance in a program or an archive have far more bytes behind them. */
const MOST_BYTES_PER_SECOND = 80_000;

/**
 * Tells the format from the content (never from a name), and finds rate, channels, the exact number of samples and the
 * places to start decoding from. WAV needs a few kilobytes of the file; MP3 and FLAC are read through once, in bounded
 * memory, without decoding. Failures of the source are thrown as they come.
 */
export async function probeAudio(source: ByteSource, decoders: DecoderPort): Promise<AudioResult<AudioIndex>> {
  if (source.sizeBytes === 0) return fail('empty', 'The file is empty.');
  const reader = new BlockReader(source);
  try {
    return advised(await probeWith(reader, decoders));
  } catch (error) {
    if (error instanceof OutOfBounds)
      return fail('corrupt', 'The file is damaged: a part of it states a size that cannot be.');
    throw error;
  } finally {
    reader.close();
  }
}

/** What is refused for its coding alone can be sent in another; what is encrypted or out of bounds cannot. */
function advised(probed: AudioResult<AudioIndex>): AudioResult<AudioIndex> {
  if (probed.ok || probed.error.kind !== 'unsupported') return probed;
  const { kind, message } = probed.error;
  if (!/ not supported( yet)?\.$/.test(message)) return probed;
  return fail(kind, `${message.slice(0, -1)}; convert it to FLAC, MP3 or 16-bit WAV.`);
}

async function probeWith(reader: BlockReader, decoders: DecoderPort): Promise<AudioResult<AudioIndex>> {
  const startByte = await skipHeadTags(reader);
  const head = await readHead(reader, startByte);
  const known = CONTAINERS.find((candidate) => candidate.hasMagic && candidate.detect(head)) ?? nameForeign(head);
  if (known) return 'probe' in known ? known.probe(reader, startByte, decoders) : known;
  const stream = bareStream(head);
  if (stream) return stream.probe(reader, startByte, decoders);
  const zerosEnd = Math.min(reader.sizeBytes, startByte + MAX_ZERO_BYTES);
  const behind = await skipZeros(reader, startByte, zerosEnd);
  const isBehind = behind > startByte && behind < zerosEnd;
  const behindZeros = isBehind ? bareStream(await readHead(reader, behind)) : undefined;
  if (behindZeros) return behindZeros.probe(reader, behind, decoders);
  return (await probeBehindJunk(reader, startByte, decoders)) ?? UNKNOWN;
}

/** Frames that begin behind bytes of any kind; undefined where there are none that are decoded. */
async function probeBehindJunk(
  reader: BlockReader,
  startByte: number,
  decoders: DecoderPort,
): Promise<AudioResult<AudioIndex> | undefined> {
  const end = Math.min(reader.sizeBytes, startByte + MAX_JUNK_BYTES);
  for (let at = startByte + JUNK_STEP_BYTES; at < end; at += JUNK_STEP_BYTES) {
    const stream = bareStream(await readHead(reader, at));
    const probed = await stream?.probe(reader, at, decoders);
    const isMostOfIt = probed?.ok && reader.sizeBytes - at <= probed.value.durationSeconds * MOST_BYTES_PER_SECOND;
    if (isMostOfIt) return probed;
  }
  return undefined;
}

const readHead = async (reader: BlockReader, at: number): Promise<Uint8Array> =>
  (await reader.peek(at, HEAD_BYTES)).slice(0, HEAD_BYTES);

/** A format of frames alone, which may begin anywhere. */
const bareStream = (head: Uint8Array) => CONTAINERS.find((candidate) => !candidate.hasMagic && candidate.detect(head));
