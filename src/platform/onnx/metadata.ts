import { forEachField } from './protobuf.ts';

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
