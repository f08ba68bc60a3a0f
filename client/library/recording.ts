/** A file whose bytes can be streamed more than once; a `Blob` or `File` is one. */
export interface StreamableFile {
  readonly size: number;
  stream(): ReadableStream<Uint8Array>;
}

/**
 * Bytes (`Blob`, `File`, `Buffer`, `Uint8Array`, `ArrayBuffer`), an object that streams them, or an address (http,
 * https, media or data) as URL or text. `rollcall-client/node` also accepts file names.
 */
export type Recording = StreamableFile | Uint8Array | ArrayBuffer | URL | string;

export type PlacedRecording = StreamableFile | { readonly url: string };

/** @throws TypeError for a value that is not a recording */
export async function placeOf(recording: Recording): Promise<PlacedRecording> {
  if (typeof recording === 'string' || recording instanceof URL) {
    const url = String(recording);
    if (/^(https?|media|data):/i.test(url)) return { url };
    throw new TypeError(`${url} is no http, https, media or data address; rollcall-client/node takes file names`);
  }
  if (recording instanceof ArrayBuffer || recording instanceof Uint8Array) return new Blob([recording as BlobPart]);
  if (typeof recording?.stream === 'function' && typeof recording.size === 'number') return recording;
  throw new TypeError('a recording is a Blob, a Buffer, a Uint8Array, an ArrayBuffer, a URL or an address');
}
