/** `ArrayBuffer.prototype.transfer` (ES2024), which old engines and the language's types lack. */
interface Transferable {
  transfer?(newByteLength: number): ArrayBuffer;
}

/**
 * Detaches the buffers of arrays, which must not be used later. The garbage collector is driven by the heap and would
 * let tens of megabytes of buffers accumulate; an isolate has 128 MB. Skips detached buffers: transferring one again
 * throws.
 */
export function release(...arrays: readonly (Float32Array | Float64Array | Uint8Array)[]): void {
  for (const { buffer, byteLength } of arrays) {
    // A view of a section of a larger buffer does not own it.
    const isOwner = byteLength > 0 && buffer.byteLength === byteLength;
    if (isOwner && buffer instanceof ArrayBuffer) (buffer as Transferable).transfer?.(0);
  }
}

/**
 * Grows a buffer.
 *
 * @param kept number of first values that are copied
 * @param length number of values that must fit
 * @param most largest number of values that is ever needed
 * @returns `buffer` if it is long enough; otherwise one of at least twice its length, up to `most`
 */
export function grown<T extends Float32Array | Uint8Array>(
  buffer: T,
  kept: number,
  length: number,
  most = Number.POSITIVE_INFINITY,
): T {
  if (length <= buffer.length) return buffer;
  const larger = new (buffer.constructor as new (length: number) => T)(
    Math.max(length, Math.min(most, 2 * buffer.length)),
  );
  larger.set(buffer.subarray(0, kept));
  return larger;
}

/** The values of all parts in sequence, in a new array. */
export function concatenated<T extends Float32Array | Int32Array | Uint8Array>(
  type: new (length: number) => T,
  parts: readonly ArrayLike<number>[],
): T {
  const joined = new type(parts.reduce((sum, { length }) => sum + length, 0));
  let filled = 0;
  for (const part of parts) {
    joined.set(part, filled);
    filled += part.length;
  }
  return joined;
}
