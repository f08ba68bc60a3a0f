import type { ByteSource, ByteStream } from '../../src/audio/audio-ports.ts';
import type { OpenSource, SourcesPort } from '../../src/jobs/job-ports.ts';
import { type SourceErrorKind, SourceReadError } from '../../src/jobs/source-error.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

/**
 * Behaviour of a recording's server: `copied` sends no validator, `indexed` has a container that needs ranges but
 * supports none, `slow` takes about as long as the audio, `changing` has another file after a while, `farm` has
 * machines with different files.
 */
export const BEHAVIOURS = [
  'plain',
  'plain',
  'copied',
  'indexed',
  'slow',
  'changing',
  'changing',
  'farm',
  'farm',
  'missing',
] as const;

export interface SimulatedRecording {
  readonly behaviour: (typeof BEHAVIOURS)[number];
  /** Duration of each version of the file. */
  readonly seconds: readonly number[];
  /** When each further version replaces the one before, in simulated milliseconds. */
  readonly changesAt: readonly number[];
  /** So high for some that an invocation hands over after a few minutes of audio. */
  readonly sampleRateHz: number;
}

/** A version of a recording. */
export interface SimulatedFile {
  readonly recording: SimulatedRecording;
  readonly version: number;
}

/** Bytes of a second of audio. */
export const BYTES_PER_SECOND = 1024;
const SECONDS_PER_READ = 30;

/** Each byte of a file is its index here, which identifies it. */
const files: SimulatedFile[] = [];
const MAX_FILES = 256;
let fileCount = 0;

function numberOf(file: SimulatedFile): number {
  const known = files.findIndex(({ recording, version }) => recording === file.recording && version === file.version);
  if (known >= 0) return known;
  const number = fileCount++ % MAX_FILES;
  files[number] = file;
  return number;
}

export const fileOf = (byte: number): SimulatedFile => files[byte];

const failure = (kind: SourceErrorKind) => ({ kind, message: `The source: ${kind}.` });

/** The version that a request now would get. */
export function currentVersion({ time }: World, { behaviour, seconds, changesAt }: SimulatedRecording): number {
  if (behaviour === 'farm') return time.below(seconds.length);
  return changesAt.filter((at) => at <= time.now).length;
}

/** Content of a copy: URL and version of its file. */
export const copyText = (url: string, version: number): string => `${url} ${version}`;

/** Stores a copy. */
export async function putCopy({ storage, copies, recordings }: World, key: string, text: string): Promise<void> {
  const object = await storage.bucket.put(key, text);
  const [url, version] = text.split(' ');
  copies.set(object!.etag, { recording: recordings.get(url)!, version: Number(version) });
}

/** Slow and unreliable servers of recordings. Copies are real objects that contain only `copyText`. */
export function sourcesOf(world: World, caller: Invocation): SourcesPort {
  const { time, faults, recordings } = world;

  function sourceOf(file: SimulatedFile, canSeek: boolean, read: () => Promise<void>): ByteSource {
    const sizeBytes = file.recording.seconds[file.version] * BYTES_PER_SECOND;
    const number = numberOf(file);
    return {
      sizeBytes,
      canSeek,
      async open(offset): Promise<ByteStream> {
        let at = offset;
        let isClosed = false;
        return {
          async read() {
            if (at >= sizeBytes) return undefined;
            await read();
            if (isClosed) return undefined;
            const bytes = new Uint8Array(Math.min(SECONDS_PER_READ * BYTES_PER_SECOND, sizeBytes - at)).fill(number);
            at += bytes.length;
            return bytes;
          },
          close() {
            isClosed = true;
          },
        };
      },
      read: async () => {
        throw new Error('a simulated recording reads no ranges');
      },
    };
  }

  function fromServer(recording: SimulatedRecording): OpenSource {
    const version = currentVersion(world, recording);
    const { behaviour } = recording;
    const read = async () => {
      await caller.sleep(behaviour === 'slow' ? time.between(500, 8000) : time.between(5, 800));
      if (time.chance(0.005)) await caller.sleep(time.between(30_000, 200_000));
      if (faults.chance(0.006)) throw new SourceReadError(failure('timeout'));
      // A broken connection may be resumed only with the same file.
      if (time.chance(0.1) && currentVersion(world, recording) !== version)
        throw new SourceReadError(failure('changed'));
    };
    const source = sourceOf({ recording, version }, behaviour !== 'indexed', read);
    return { source, identity: `${version} ${source.sizeBytes}`, close: () => undefined };
  }

  return {
    async open(url) {
      const isInline = url.startsWith('data:');
      const recording = recordings.get(isInline ? decodeURIComponent(url.slice('data:'.length)) : url)!;
      if (isInline) {
        const source = sourceOf({ recording, version: 0 }, true, async () => undefined);
        return { ok: true, value: { source, identity: 'inline' } };
      }
      await caller.sleep(time.chance(0.1) ? time.between(1000, 30_000) : time.between(10, 1000));
      if (faults.chance(0.1)) return { ok: false, error: failure('timeout') };
      if (recording.behaviour === 'missing') return { ok: false, error: failure('http_status') };
      return { ok: true, value: recording.behaviour === 'copied' ? 'copy' : fromServer(recording) };
    },

    openObject({ key, sizeBytes, etag }) {
      const file = world.copies.get(etag!)!;
      const read = async () => {
        await caller.sleep(time.between(1, 50));
        const head = () => faults.call(caller, 'sources.read', () => world.storage.bucket.head(key));
        if ((await head())?.etag !== etag) throw new SourceReadError(failure('changed'));
      };
      return { source: sourceOf(file, true, read), identity: `${file.version} ${sizeBytes}` };
    },

    findCopy: (key) =>
      faults.call(caller, 'sources.findCopy', async () => {
        const object = await world.storage.bucket.head(key);
        return object ? { key, sizeBytes: object.size, etag: object.etag } : undefined;
      }),
  };
}
