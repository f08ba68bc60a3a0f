import type { ByteSource } from '../../src/audio/types.ts';
import type { SourceRef, SourcesPort } from '../../src/jobs/ports.ts';
import { type SourceErrorKind, SourceReadError } from '../../src/jobs/source-error.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

/** How a recording's server behaves: `copied` gives no ranges, `parts` gives some that are not of one file. */
export const FATES = ['plain', 'plain', 'copied', 'parts', 'missing'] as const;

export interface Recording {
  readonly durationSeconds: number;
  readonly fate: (typeof FATES)[number];
}

export interface SimulatedSource extends ByteSource {
  readonly recording: Recording;
}

const COPY = new TextEncoder().encode('copy');
const SIZE_BYTES = 1e6;

/** Servers of recordings, slow and unreliable; copies of them are real objects. */
export function sourcesOf(world: World, caller: Invocation, put: (key: string, bytes: Uint8Array) => Promise<void>) {
  const { time, faults, recordings, copies } = world;

  async function copyTo(key: string, recording: Recording): Promise<SourceRef> {
    copies.set(key, recording);
    await put(key, COPY);
    return { kind: 'object', key, sizeBytes: COPY.length };
  }
  const keyOfCopy = (spoolKey: string) => `${spoolKey}-${time.below(1e9)}`;
  const recordingOf = (ref: SourceRef) => (ref.kind === 'http' ? recordings.get(ref.url) : copies.get(ref.key))!;
  const failure = (kind: SourceErrorKind) => ({ kind, message: `The source: ${kind}.` });

  const port: SourcesPort = {
    async resolve(url, spoolKey) {
      const isInline = url.startsWith('data:');
      const address = isInline ? decodeURIComponent(url.slice('data:'.length)) : url;
      const recording = recordings.get(address)!;
      await caller.sleep(time.between(10, 30_000));
      if (faults.chance(0.1)) return { ok: false, error: failure('timeout') };
      if (recording.fate === 'missing') return { ok: false, error: failure('http_status') };
      if (recording.fate !== 'copied' && !isInline)
        return { ok: true, value: { kind: 'http', url: address, sizeBytes: SIZE_BYTES } };
      return { ok: true, value: await copyTo(isInline ? spoolKey : keyOfCopy(spoolKey), recording) };
    },

    async copy(ref, spoolKey) {
      await caller.sleep(time.between(10, 60_000));
      return { ok: true, value: await copyTo(keyOfCopy(spoolKey), recordingOf(ref)) };
    },

    open(ref): SimulatedSource {
      const recording = recordingOf(ref);
      return {
        sizeBytes: ref.sizeBytes,
        recording,
        async read() {
          await caller.sleep(time.chance(0.03) ? time.between(30_000, 200_000) : time.between(10, 5000));
          if (faults.chance(0.02)) throw new SourceReadError(failure('timeout'));
          if (ref.kind === 'http' && recording.fate === 'parts' && time.chance(0.1))
            throw new SourceReadError(failure('changed'));
          if (ref.kind === 'object' && !(await exists(ref.key))) throw new SourceReadError(failure('gone'));
          return new Uint8Array(10);
        },
      };
    },
  };
  const exists = (key: string) => faults.call(caller, 'objects.exists', () => world.objects.exists(key));
  return port;
}
