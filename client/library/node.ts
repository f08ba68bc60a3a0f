/** The client for Node 20 and later. It accepts file names and includes a WebSocket. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { nodeWebSocket } from '../live/node.ts';
import { type Recording, Rollcall as RollcallEverywhere, type RollcallOptions, type StreamableFile } from './index.ts';

export * from './index.ts';
export { nodeWebSocket };

/** A file on this machine, streamed from the disk. */
export async function fileAt(path: string): Promise<StreamableFile> {
  const { size } = await stat(path);
  return { size, stream: () => Readable.toWeb(createReadStream(path)) as ReadableStream<Uint8Array> };
}

/** `Rollcall` with file names (or `file:` URLs) as recordings, and a WebSocket for Node 20. */
export class Rollcall extends RollcallEverywhere {
  constructor(options: RollcallOptions) {
    super({ webSocket: nodeWebSocket, ...options });
  }

  protected override async place(recording: Recording) {
    if (recording instanceof URL && recording.protocol === 'file:') return fileAt(fileURLToPath(recording));
    const isAddress = typeof recording !== 'string' || /^(https?|media|data):/i.test(recording);
    return isAddress ? super.place(recording) : fileAt(recording);
  }
}
