/** Tags of MPEG-4 descriptors (ISO/IEC 14496-1 §7.2.6) and the fixed fields in front of what is nested in the second. */
const ES = 3;
const DECODER_CONFIG = 4;
const DECODER_SPECIFIC = 5;
const DECODER_CONFIG_BYTES = 13;

/** What an elementary stream descriptor says: which coding (§7.2.6.6), and the decoder's private data, empty where there is none. */
export interface DecoderConfig {
  readonly objectType: number;
  readonly privateData: Uint8Array;
}

/** Reads the descriptors inside one another; undefined where there is no decoder configuration among them. */
export function decoderConfig(descriptor: Uint8Array): DecoderConfig | undefined {
  let objectType: number | undefined;
  let at = 0;
  // Each turn goes on behind the header, or steps into the descriptor that holds the next.
  while (at + 2 <= descriptor.length) {
    const tag = descriptor[at++];
    let length = 0;
    for (let count = 0; count < 4 && at < descriptor.length; count++) {
      const byte = descriptor[at++];
      length = length * 128 + (byte & 0x7f);
      if (!(byte & 0x80)) break;
    }
    if (tag === ES) at += esFieldsBytes(descriptor, at);
    else if (tag === DECODER_CONFIG) {
      objectType = descriptor[at];
      at += DECODER_CONFIG_BYTES;
    } else if (tag === DECODER_SPECIFIC && objectType !== undefined) {
      return { objectType, privateData: descriptor.slice(at, at + length) };
    } else at += length;
  }
  return objectType === undefined ? undefined : { objectType, privateData: new Uint8Array(0) };
}

/** Fields in front of the decoder configuration: three bytes, and more by their flags. */
function esFieldsBytes(descriptor: Uint8Array, at: number): number {
  const flags = descriptor[at + 2] ?? 0;
  const dependsOn = flags & 0x80 ? 2 : 0;
  const url = flags & 0x40 ? 1 + (descriptor[at + 3 + dependsOn] ?? 0) : 0;
  return 3 + dependsOn + url + (flags & 0x20 ? 2 : 0);
}
