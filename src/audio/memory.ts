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
