/**
 * Walks the fields of one protobuf message (the encoding of ONNX files), top level only.
 *
 * @param visit gets the field's number, its payload where it is length-delimited, and all of its bytes, as views
 * @throws when the bytes are not a well-formed message
 */
export function forEachField(
  message: Uint8Array,
  visit: (field: number, payload: Uint8Array | undefined, whole: Uint8Array) => void,
): void {
  let offset = 0;

  function varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (offset >= message.length) throw malformed();
      const byte = message[offset++];
      // Multiplication, not a shift: lengths may pass 2^31.
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  }

  while (offset < message.length) {
    const start = offset;
    let payload: Uint8Array | undefined;
    const tag = varint();
    const field = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        varint();
        break;
      case 1:
        offset += 8;
        break;
      case 2: {
        const length = varint();
        if (offset + length > message.length) throw malformed();
        payload = message.subarray(offset, offset + length);
        offset += length;
        break;
      }
      case 5:
        offset += 4;
        break;
      default:
        throw malformed();
    }
    if (offset > message.length) throw malformed();
    visit(field, payload, message.subarray(start, offset));
  }
}

/** A length-delimited field of a message: its number and length, then the parts. */
export function delimited(field: number, parts: readonly Uint8Array[]): Uint8Array[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return [varintOf(8 * field + 2), varintOf(length), ...parts];
}

/** A field with a whole number. */
export function numbered(field: number, value: number): Uint8Array[] {
  return [varintOf(8 * field), varintOf(value)];
}

function varintOf(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Uint8Array.from([...bytes, rest]);
}

/** The parts as one array. */
export function joinedParts(parts: readonly Uint8Array[]): Uint8Array {
  const result = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let filled = 0;
  for (const part of parts) {
    result.set(part, filled);
    filled += part.length;
  }
  return result;
}

function malformed(): Error {
  return new Error('not an ONNX model: the file is damaged or of another format');
}
