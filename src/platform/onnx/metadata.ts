/**
 * Reads `metadata_props` of an ONNX file: the ModelProto's field 14, each entry a message with key (1) and value (2).
 * Written by hand because onnxruntime-web does not give metadata out. Every other field is skipped unread, so the cost is
 * that of walking the top level only.
 *
 * @returns key → value; empty for a file that carries none
 * @throws when the bytes are not a well-formed protobuf message
 */
export function readOnnxMetadata(model: Uint8Array): ReadonlyMap<string, string> {
  const properties = new Map<string, string>();
  forEachField(model, (field, payload) => {
    if (field !== METADATA_PROPS || payload === undefined) return;
    let key = '';
    let value = '';
    forEachField(payload, (inner, text) => {
      if (inner === 1 && text !== undefined) key = utf8.decode(text);
      if (inner === 2 && text !== undefined) value = utf8.decode(text);
    });
    if (key !== '') properties.set(key, value);
  });
  return properties;
}

const METADATA_PROPS = 14;
const utf8 = new TextDecoder();

/** Calls `visit` for each field; `payload` is set for length-delimited fields only. */
function forEachField(message: Uint8Array, visit: (field: number, payload: Uint8Array | undefined) => void): void {
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
    const tag = varint();
    const field = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        varint();
        visit(field, undefined);
        break;
      case 1:
        offset += 8;
        visit(field, undefined);
        break;
      case 2: {
        const length = varint();
        if (offset + length > message.length) throw malformed();
        visit(field, message.subarray(offset, offset + length));
        offset += length;
        break;
      }
      case 5:
        offset += 4;
        visit(field, undefined);
        break;
      default:
        throw malformed();
    }
  }
  if (offset !== message.length) throw malformed();
}

function malformed(): Error {
  return new Error('not an ONNX model: the file is damaged or of another format');
}
