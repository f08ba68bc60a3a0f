import type { PacketWalk } from '../../packets/packet.ts';

/** How often the bytes of a file may be heard, on average. Writers use none twice; a few boxes could ask for the same ones millions of times. */
const MOST_USES = 2;

/** What a walk found of it. */
export interface Reuse {
  /** Whether packets were left out, since those in front of them had more bytes than the file. */
  isEndless?: boolean;
}

/** The packets of a walk, up to where they have used all bytes of the file too often. A walk that begins in the middle ends no earlier than one from the start. */
export async function* withoutReuse(walk: PacketWalk, fileBytes: number, reuse: Reuse): PacketWalk {
  let left = MOST_USES * fileBytes;
  for await (const run of walk) {
    for (const { length } of run.packets) left -= length;
    reuse.isEndless = left < 0;
    if (reuse.isEndless) return;
    yield run;
  }
}
