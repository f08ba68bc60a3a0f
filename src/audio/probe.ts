import { BlockReader, OutOfBounds } from './block-reader.ts';
import { type AudioIndex, CONTAINERS } from './registry.ts';
import { type AudioResult, fail } from './result.ts';
import { nameForeign, UNKNOWN } from './sniff.ts';
import { skipHeadTags } from './tags.ts';
import type { ByteSource, DecoderPort } from './types.ts';

/** Bytes behind the tags that detection looks at. */
const HEAD_BYTES = 1 << 16;

/**
 * Tells the format from the content (never from a name), and finds rate, channels, the exact number of samples and the
 * places to start decoding from. WAV needs a few kilobytes of the file; MP3 and FLAC are read through once, in bounded
 * memory, without decoding. Failures of the source are thrown as they come.
 */
export async function probeAudio(source: ByteSource, decoders: DecoderPort): Promise<AudioResult<AudioIndex>> {
  if (source.sizeBytes === 0) return fail('empty', 'The file is empty.');
  const reader = new BlockReader(source);
  try {
    return await probeWith(reader, decoders);
  } catch (error) {
    if (error instanceof OutOfBounds)
      return fail('corrupt', 'The file is damaged: a part of it states a size that cannot be.');
    throw error;
  } finally {
    reader.close();
  }
}

async function probeWith(reader: BlockReader, decoders: DecoderPort): Promise<AudioResult<AudioIndex>> {
  const startByte = await skipHeadTags(reader);
  const head = (await reader.peek(startByte, HEAD_BYTES)).slice(0, HEAD_BYTES);
  const container =
    CONTAINERS.find((candidate) => candidate.hasMagic && candidate.detect(head)) ??
    nameForeign(head) ??
    CONTAINERS.find((candidate) => !candidate.hasMagic && candidate.detect(head)) ??
    UNKNOWN;
  return 'probe' in container ? container.probe(reader, startByte, decoders) : container;
}
