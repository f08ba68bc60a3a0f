/** Recordings of any length from the packets of the fixtures. */
import { BlockReader } from '../../src/audio/block-reader.ts';
import { packetBytes } from '../../src/audio/container.ts';
import { openPart } from '../../src/audio/recording.ts';
import { audioPorts, concat, memorySource } from './audio.ts';
import { find, formatFixture } from './bytes.ts';
import { block, cluster, element, matroskaHeader } from './matroska.ts';
import type { SoundEntryFields } from './mp4.ts';
import { moved } from './mpeg-ts.ts';
import { oggPages } from './ogg.ts';

const { decoder } = audioPorts();

/** Packets of a recording, each in a separate array. */
export async function packetsOfFile(file: Uint8Array): Promise<Uint8Array[]> {
  const reader = new BlockReader(memorySource(file));
  const part = await openPart(reader, decoder);
  if (!part.ok) throw new Error(part.error.message);
  const packets: Uint8Array[] = [];
  for await (const run of part.value.walk({})) {
    for (const packet of run.packets) packets.push((await packetBytes(reader, packet, packet.length)).slice());
  }
  return packets;
}

export const times = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);

export const aacPackets = () => packetsOfFile(formatFixture('mp4-aac-16000-mono.m4a'));
export const opusPackets = () => packetsOfFile(formatFixture('ogg-opus-speech-mono.opus'));
export const opusHead = () => {
  const file = formatFixture('ogg-opus-speech-mono.opus');
  const at = find(file, 'OpusHead');
  return file.slice(at, at + 19);
};

export function aacEntry(): SoundEntryFields {
  const file = formatFixture('mp4-aac-16000-mono.m4a');
  const at = find(file, 'esds') - 4;
  const boxes = file.slice(at, at + new DataView(file.buffer, file.byteOffset).getUint32(at));
  return { type: 'mp4a', channels: 1, bits: 16, rateHz: 16_000, timescale: 16_000, boxes };
}

/** Opus in OGG with a fixed number of packets per page. @param lost numbers of missing pages */
export async function oggOpus(repeats: number, perPage: number, lost: readonly number[] = []): Promise<Uint8Array> {
  const serial = 5;
  const packets = times(repeats, await opusPackets()).flat();
  const pages = [
    oggPages([opusHead()], { serial, isFirst: true }),
    oggPages([Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8)])], { serial, sequence: 1 }),
  ];
  for (let first = 0; first < packets.length; first += perPage) {
    const sequence = 2 + first / perPage;
    const end = Math.min(packets.length, first + perPage);
    if (lost.includes(sequence)) continue;
    pages.push(oggPages(packets.slice(first, end), { serial, sequence, granule: 960 * end }));
  }
  return concat(...pages);
}

/** @param startMs start time of a packet by its number */
export function matroskaOf(
  codecId: string,
  privateData: Uint8Array,
  packets: readonly Uint8Array[],
  startMs: (i: number) => number,
) {
  const clusters: Uint8Array[] = [];
  for (let first = 0; first < packets.length; first += 50) {
    const blocks = packets.slice(first, first + 50).map((data, i) => block(startMs(first + i) - startMs(first), data));
    clusters.push(cluster(startMs(first), ...blocks));
  }
  const extra = privateData.length > 0 ? element(0x63a2, privateData) : new Uint8Array(0);
  return concat(matroskaHeader({ codecId, extra }), ...clusters);
}

/** Repeats the fixture with continuous times. */
export function transportStreamOf(
  name: string,
  pid: number,
  seconds: number,
  repeats: number,
  startSeconds = 0,
): Uint8Array {
  const file = formatFixture(name);
  return concat(...Array.from({ length: repeats }, (_, i) => moved(file, pid, startSeconds + i * seconds)));
}

export function wavOf(name: string, repeats: number): Uint8Array {
  const file = formatFixture(name);
  const at = find(file, 'data') + 8;
  const bytes = new DataView(file.buffer, file.byteOffset).getUint32(at - 4, true);
  const out = concat(file.subarray(0, at), ...times(repeats, file.subarray(at, at + bytes)));
  new DataView(out.buffer, out.byteOffset).setUint32(at - 4, bytes * repeats, true);
  return out;
}

export function flacOf(name: string, repeats: number): Uint8Array {
  const file = formatFixture(name);
  let at = 4;
  for (let isLast = false; !isLast; ) {
    isLast = (file[at] & 0x80) !== 0;
    at += 4 + ((file[at + 1] << 16) | (file[at + 2] << 8) | file[at + 3]);
  }
  return concat(file.subarray(0, at), ...times(repeats, file.subarray(at)));
}

export const amrOf = (name: string, magicBytes: number, repeats: number): Uint8Array => {
  const file = formatFixture(name);
  return concat(file, ...times(repeats - 1, file.subarray(magicBytes)));
};
