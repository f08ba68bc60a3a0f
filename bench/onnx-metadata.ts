/** A length-delimited protobuf field. */
function field(number: number, bytes: Uint8Array): Uint8Array {
  const header: number[] = [(number << 3) | 2];
  let length = bytes.length;
  while (length > 127) {
    header.push((length & 127) | 128);
    length >>>= 7;
  }
  header.push(length);
  return Uint8Array.from([...header, ...bytes]);
}

/** Field numbers of onnx.proto: ModelProto.metadata_props, StringStringEntryProto.key and .value. */
const METADATA_PROPS = 14;
const KEY = 1;
const VALUE = 2;

/**
 * Adds metadata to a serialised ONNX model without parsing it: in protobuf, appended fields of a repeated kind join
 * the ones before. Our first segmentation models name their window `window_samples` alone; sherpa-onnx wants `window_size`.
 */
export function withOnnxMetadata(model: Uint8Array, entries: Readonly<Record<string, string>>): Uint8Array {
  const text = new TextEncoder();
  const parts = Object.entries(entries).map(([key, value]) =>
    field(METADATA_PROPS, Uint8Array.from([...field(KEY, text.encode(key)), ...field(VALUE, text.encode(value))])),
  );
  const result = new Uint8Array(model.length + parts.reduce((total, part) => total + part.length, 0));
  result.set(model);
  let offset = model.length;
  for (const part of parts) {
    result.set(part, offset);
    offset += part.length;
  }
  return result;
}
