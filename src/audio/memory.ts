/** `ArrayBuffer.prototype.transfer` (ES2024), which old engines and the language's types do not know yet. */
interface Transferable {
  transfer?(newByteLength: number): ArrayBuffer;
}

/**
 * Detaches the buffers of arrays, which must not be used later. The garbage collector goes by the heap and would let
 * tens of megabytes of them pile up, and an isolate has 128 MB. Skips detached buffers: transferring one again throws.
 */
export function release(...arrays: readonly (Float32Array | Float64Array | Uint8Array)[]): void {
  for (const { buffer, byteLength } of arrays) {
    // A view of a part of a larger buffer does not own it.
    const isWhole = byteLength > 0 && buffer.byteLength === byteLength;
    if (isWhole && buffer instanceof ArrayBuffer) (buffer as Transferable).transfer?.(0);
  }
}

/**
 * Room in a buffer that is filled bit by bit.
 *
 * @param kept values at the front that stay
 * @param length values that must fit
 * @param most values that are ever needed: no buffer becomes larger
 * @returns `buffer` where it is long enough; else one of at least twice its length
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

/** The values of all parts, one after another, in a new array. */
export function concatenated<T extends Float32Array | Int32Array | Uint8Array>(
  type: new (length: number) => T,
  parts: readonly ArrayLike<number>[],
): T {
  const whole = new type(parts.reduce((sum, { length }) => sum + length, 0));
  let filled = 0;
  for (const part of parts) {
    whole.set(part, filled);
    filled += part.length;
  }
  return whole;
}
