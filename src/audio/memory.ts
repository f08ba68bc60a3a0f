/** `ArrayBuffer.prototype.transfer` (ES2024), which old engines and the language's types do not know yet. */
interface Transferable {
  transfer?(newByteLength: number): ArrayBuffer;
}

/**
 * Gives the memory of arrays back at once. Nobody may use them afterwards. A garbage collector that goes by the heap lets tens of
 * megabytes of such arrays pile up before it runs, and an isolate has 128 MB for everything.
 */
export function release(...arrays: readonly (Float32Array | Float64Array | Uint8Array)[]): void {
  for (const { buffer, byteLength } of arrays) {
    // A part of a larger buffer is somebody else's too.
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) (buffer as Transferable).transfer?.(0);
  }
}
