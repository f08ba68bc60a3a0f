/** `ArrayBuffer.prototype.transfer` (ES2024), which old engines and the language's types do not know yet. */
interface Transferable {
  transfer?(newByteLength: number): ArrayBuffer;
}

/**
 * Gives the memory of arrays back at once. Nobody may use them afterwards. A garbage collector that goes by the heap lets tens of
 * megabytes of such arrays pile up before it runs, and an isolate has 128 MB for everything. Arrays that were given back before are left alone.
 */
export function release(...arrays: readonly (Float32Array | Float64Array | Uint8Array)[]): void {
  for (const { buffer, byteLength } of arrays) {
    // Nothing is left of one that was given back, and asking for it again would throw. A part of a larger buffer is somebody else's too.
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
