import { type BlockReader, OutOfBounds } from './block-reader.ts';
import type { Part } from './container.ts';
import { CONTAINERS } from './registry.ts';
import { type AudioResult, fail } from './result.ts';
import { nameForeign, UNKNOWN } from './sniff.ts';
import { skipHeadTags } from './tags.ts';
import type { DecoderPort } from './types.ts';
import { skipZeros } from './zeros.ts';

/** Bytes after the tags that detection looks at. */
const HEAD_BYTES = 1 << 16;
/** Zeros in front of sound, as recorders and broken tags leave them. */
const MAX_ZERO_BYTES = 4 << 20;
/** Other bytes in front of it: the rest of a tag that states too small a size, mostly a picture. */
const MAX_JUNK_BYTES = 1 << 20;
/** What a chain of the longest frames takes is looked at twice, so that none is cut in two. */
const JUNK_STEP_BYTES = HEAD_BYTES / 2;
/** After junk, frames must fill most of so many bytes: a few come by chance in a program or an archive. */
const PROOF_BYTES = 1 << 18;
const PROOF_SHARE = 0.5;

/**
 * Detects the format from the content (never from a name) and reads its head. Failures of the source are thrown as they
 * come.
 */
export async function openPart(reader: BlockReader, decoders: DecoderPort): Promise<AudioResult<Part>> {
  try {
    return advised(await detect(reader, decoders));
  } catch (error) {
    if (error instanceof OutOfBounds) return DAMAGED_SIZE;
    throw error;
  }
}

export const DAMAGED_SIZE = fail('corrupt', 'The file is damaged: a part of it states a size that cannot be.');

/** What is refused for its coding alone can be sent in another; what is encrypted or out of bounds cannot. */
function advised(opened: AudioResult<Part>): AudioResult<Part> {
  if (opened.ok || opened.error.kind !== 'unsupported') return opened;
  const { kind, message } = opened.error;
  if (!/ not supported( yet)?\.$/.test(message)) return opened;
  return fail(kind, `${message.slice(0, -1)}; convert it to FLAC, MP3 or 16-bit WAV.`);
}

async function detect(reader: BlockReader, decoders: DecoderPort): Promise<AudioResult<Part>> {
  const startByte = await skipHeadTags(reader);
  const head = await readHead(reader, startByte);
  const known = CONTAINERS.find((candidate) => candidate.hasMagic && candidate.detect(head)) ?? nameForeign(head);
  if (known) return 'open' in known ? known.open(reader, startByte, decoders) : known;
  const stream = bareStream(head);
  if (stream) return stream.open(reader, startByte, decoders);
  const zerosEnd = Math.min(reader.sizeBytes, startByte + MAX_ZERO_BYTES);
  const behind = await skipZeros(reader, startByte, zerosEnd);
  const isBehind = behind > startByte && behind < zerosEnd;
  const behindZeros = isBehind ? bareStream(await readHead(reader, behind)) : undefined;
  if (behindZeros) return behindZeros.open(reader, behind, decoders);
  return (await openBehindJunk(reader, startByte, decoders)) ?? UNKNOWN;
}

/** Frames that begin after bytes of any kind; undefined where there are none that are decoded. */
async function openBehindJunk(
  reader: BlockReader,
  startByte: number,
  decoders: DecoderPort,
): Promise<AudioResult<Part> | undefined> {
  const end = Math.min(reader.sizeBytes, startByte + MAX_JUNK_BYTES);
  for (let at = startByte + JUNK_STEP_BYTES; at < end; at += JUNK_STEP_BYTES) {
    const stream = bareStream(await readHead(reader, at));
    const opened = await stream?.open(reader, at, decoders);
    if (opened?.ok && (await isMostlyFrames(opened.value, reader.sizeBytes))) return opened;
  }
  return undefined;
}

/** Whether the packets of a part fill most of the bytes after the first one. */
async function isMostlyFrames(part: Part, sizeBytes: number): Promise<boolean> {
  let bytes = 0;
  let from: number | undefined;
  let end = sizeBytes;
  for await (const { packets } of part.walk({})) {
    from ??= packets[0]?.offset ?? 0;
    end = Math.min(sizeBytes, from + PROOF_BYTES);
    for (const { offset, length } of packets) if (offset < end) bytes += length;
    if ((packets.at(-1)?.offset ?? 0) >= end) break;
  }
  return from !== undefined && bytes >= PROOF_SHARE * (end - from);
}

const readHead = async (reader: BlockReader, at: number): Promise<Uint8Array> =>
  (await reader.peek(at, HEAD_BYTES)).slice(0, HEAD_BYTES);

/** A format of frames alone, which may begin anywhere. */
const bareStream = (head: Uint8Array) => CONTAINERS.find((candidate) => !candidate.hasMagic && candidate.detect(head));
