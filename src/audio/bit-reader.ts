/** Fields of any width, first bit first. Past the end of the bytes it reads zeros, and `isPast` says so. */
export class BitReader {
  /** Number of the next bit. */
  at: number;

  constructor(
    private readonly bytes: Uint8Array,
    fromByte = 0,
  ) {
    this.at = fromByte * 8;
  }

  /** At most 32 bits. */
  bits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, this.at++) {
      value = value * 2 + (((this.bytes[this.at >> 3] ?? 0) >> (7 - (this.at & 7))) & 1);
    }
    return value;
  }

  get isPast(): boolean {
    return this.at > this.bytes.length * 8;
  }
}
