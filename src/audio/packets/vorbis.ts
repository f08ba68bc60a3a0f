import { fromAscii, hasAscii, u32le } from '../bytes.ts';

/** What of the Vorbis headers the length of a packet depends on (Vorbis I specification, §4.2). */
export interface VorbisModes {
  readonly shortSamples: number;
  readonly longSamples: number;
  readonly modeBits: number;
  readonly isLong: readonly boolean[];
}

export interface VorbisIdentification {
  readonly channels: number;
  readonly sampleRateHz: number;
  readonly shortSamples: number;
  readonly longSamples: number;
}

/** The identification header; undefined when it is none. */
export function parseVorbisIdentification(packet: Uint8Array): VorbisIdentification | undefined {
  if (packet.length < 30 || packet[0] !== 1 || !hasAscii(packet, 1, 'vorbis')) return undefined;
  const shortSamples = 1 << (packet[28] & 15);
  const longSamples = 1 << (packet[28] >> 4);
  if (packet[11] === 0 || shortSamples < 64 || longSamples < shortSamples || longSamples > 8192) return undefined;
  return { channels: packet[11], sampleRateHz: u32le(packet, 12), shortSamples, longSamples };
}

/** Comments are of no use to a decoder and may hold pictures: none, no vendor. */
const NO_COMMENTS = Uint8Array.from([3, ...fromAscii('vorbis'), 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/** Identification and setup header as private data: three packets in Xiph lacing. */
export function vorbisPrivateData(identification: Uint8Array, setup: Uint8Array): Uint8Array {
  const lengths = [identification.length, NO_COMMENTS.length].flatMap(xiphLength);
  const out = new Uint8Array(1 + lengths.length + identification.length + NO_COMMENTS.length + setup.length);
  let at = 0;
  for (const part of [[2, ...lengths], identification, NO_COMMENTS, setup]) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

const xiphLength = (length: number): number[] => [
  ...new Array<number>(Math.floor(length / 255)).fill(255),
  length % 255,
];

/** Takes private data in Xiph lacing apart; undefined when it is not three packets. */
export function splitXiphHeaders(bytes: Uint8Array): Uint8Array[] | undefined {
  if (bytes[0] !== 2) return undefined;
  const lengths = [0, 0];
  let at = 1;
  for (let i = 0; i < 2; i++) {
    for (;;) {
      if (at >= bytes.length) return undefined;
      lengths[i] += bytes[at];
      if (bytes[at++] !== 255) break;
    }
  }
  const [first, second] = [at + lengths[0], at + lengths[0] + lengths[1]];
  if (second > bytes.length) return undefined;
  return [bytes.subarray(at, first), bytes.subarray(first, second), bytes.subarray(second)];
}

const MAX_MODES = 64;
/** One mode: 1 bit block size, 16 bits window type, 16 bits transform type, 8 bits mapping. */
const MODE_BITS = 41;

/**
 * Reads the modes from the end of the setup header backwards, where they stand, so that nothing in front of them (codebooks,
 * floors) must be understood: window and transform type are 0 in every mode, and the count in front must fit.
 */
export function parseVorbisModes(privateData: Uint8Array): VorbisModes | undefined {
  const packets = splitXiphHeaders(privateData);
  const identification = packets && parseVorbisIdentification(packets[0]);
  if (!packets || !identification) return undefined;
  const setup = packets[2];
  const bit = (at: number) => (setup[at >> 3] >> (at & 7)) & 1;
  const bits = (at: number, count: number) => {
    let value = 0;
    for (let i = count - 1; i >= 0; i--) value = value * 2 + bit(at + i);
    return value;
  };
  let end = setup.length * 8 - 1;
  while (end > 0 && bit(end) === 0) end--;
  // `end` is the framing bit; the modes lie right in front of it.
  const isLong: boolean[] = [];
  let found: readonly boolean[] | undefined;
  for (let count = 1; count <= MAX_MODES; count++) {
    const at = end - count * MODE_BITS;
    if (at < 6 + 7 * 8 || bits(at + 1, 32) !== 0 || bits(at + 33, 8) > 63) break;
    isLong.unshift(bit(at) === 1);
    if (bits(at - 6, 6) + 1 === count) found = [...isLong];
  }
  if (!found) return undefined;
  const { shortSamples, longSamples } = identification;
  return { shortSamples, longSamples, modeBits: Math.ceil(Math.log2(found.length)), isLong: found };
}
