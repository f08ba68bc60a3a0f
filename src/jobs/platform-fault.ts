import type { ByteSource } from '../audio/audio-ports.ts';
import type { JobPorts, ObjectChunks, ObjectStore } from './ports.ts';
import { SourceReadError } from './source-error.ts';

/** D1, R2, a queue or a Durable Object failed. Never counted against a job. */
export class PlatformFault extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause), { cause });
    this.name = 'PlatformFault';
  }
}

/** The same ports, where every exception of the platform's services is a PlatformFault. */
export function markPlatformFaults(ports: JobPorts): JobPorts {
  return {
    ...ports,
    store: marked(ports.store),
    queue: marked(ports.queue),
    objects: objectsMarked(ports.objects),
    progress: marked(ports.progress),
    copies: marked(ports.copies),
    media: marked(ports.media),
    sources: {
      ...ports.sources,
      findCopy: marked({ find: ports.sources.findCopy }).find,
      openObject: (object) => {
        const opened = ports.sources.openObject(object);
        return { ...opened, source: sourceMarked(opened.source) };
      },
    },
    // They load models from R2.
    ...marked({ engine: ports.engine, plda: ports.plda }),
  };
}

function marked<T extends object>(port: T): T {
  return new Proxy(port, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        try {
          return await method.apply(target, args);
        } catch (error) {
          throw error instanceof SourceReadError ? error : new PlatformFault(error);
        }
      };
    },
  });
}

/** Marks the reads of a recording in the bucket. */
function sourceMarked(source: ByteSource): ByteSource {
  const { open, read } = marked({
    open: (offset: number) => source.open(offset),
    read: (offset: number, length: number) => source.read(offset, length),
  });
  return {
    sizeBytes: source.sizeBytes,
    canSeek: source.canSeek,
    read,
    async open(offset) {
      const stream = await open(offset);
      return { read: marked({ read: () => stream.read() }).read, close: () => stream.close() };
    },
  };
}

/** An exception thrown by the chunks is no fault of the bucket. */
function objectsMarked(objects: ObjectStore): ObjectStore {
  const store = marked(objects);
  return new Proxy(store, {
    get: (target, name) => (name === 'putStream' ? putStream : Reflect.get(target, name)),
  });

  async function putStream(key: string, chunks: ObjectChunks): Promise<void> {
    let own: { readonly error: unknown } | undefined;
    const watched = (async function* () {
      try {
        yield* chunks;
      } catch (error) {
        own = { error };
        throw error;
      }
    })();
    try {
      await objects.putStream(key, watched);
    } catch (error) {
      throw own ? own.error : new PlatformFault(error);
    }
  }
}
