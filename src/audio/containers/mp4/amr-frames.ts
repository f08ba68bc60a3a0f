import type { BlockReader } from '../../block-reader.ts';
import type { PacketWalk, RawPacket } from '../../packets/packet.ts';
import type { AmrFamily } from '../amr/frames.ts';

/** Frames of one run. A file may claim samples of any size, so that they are never held together. */
const MAX_RUN_FRAMES = 1024;

/** The frames of AMR in samples that hold several (3GPP TS 26.244 §6.7): a decoder takes one at a time. */
export async function* amrFrames(reader: BlockReader, walk: PacketWalk, { frameBytes }: AmrFamily): PacketWalk {
  for await (const { packets, endSeconds } of walk) {
    let frames: RawPacket[] = [];
    for (const packet of packets) {
      let at = 0;
      do {
        const [header = 0] = await reader.peek(packet.offset + at, 1);
        const left = packet.length - at;
        // Behind a type that does not exist nothing is known: the rest is one damaged frame.
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
