import { textKind } from '../../audio/index.ts';
import type { HttpRef, SourceRef } from '../../jobs/ports.ts';
import {
  CHANGED,
  EMPTY,
  endless,
  isOfParts,
  isPassing,
  refuse,
  SourceReadError,
  type SourceResult,
  statusError,
  tooLarge,
} from './errors.ts';
import { get, type HttpClient, type Opened, sleep } from './http-client.ts';
import { contentLength, isEncoded, isRadio, isSigned, parseContentRange, validatorOf } from './http-headers.ts';
import { HttpSource } from './http-source.ts';
import { findSpooled, type SpoolBounds, type Spooled, spool } from './spool.ts';

export interface SpoolTarget {
  readonly bucket: R2Bucket;
  /** What the key of the copy begins with. */
  readonly prefix: string;
  readonly maxBytes: number;
  /** How long a copy may take; without it as long as something comes. */
  readonly copyTimeoutMs?: number;
  /** Also where the recording could be read in place. */
  readonly copiesAll: boolean;
  /** Without a look at the server's ranges, in one piece. */
  readonly isWhole: boolean;
  /** Ends a copy that is in work. */
  readonly signal?: AbortSignal;
}

/** Bytes of the probe: enough to recognise a web page. */
const PROBE_BYTES = 1024;
/** What a copy asks for at a time where the server gives ranges: after a break it goes on from there. */
const MOST_COPY_BYTES = 4 * 1024 * 1024;
const FEWEST_COPY_BYTES = 256 * 1024;
/** For how long a slow server is asked: the time that a copy may take is looked at in between. */
const COPY_SECONDS = 30;
/** Of the time that a copy may take: so much of it may have gone by when another try begins, which has all of it. */
const RETRY_SHARE = 0.05;

/**
 * Finds out how the recording at an address can be read. Where the server gives ranges of a file that it can pin, the
 * reference is to the server, unless all are copied; otherwise (no ranges, no validator, compressed, an address that expires) the file is
 * copied into R2 once and the reference is to the copy. Running it again reuses a finished copy.
 */
export async function resolveHttp(
  client: HttpClient,
  url: string,
  target: SpoolTarget,
): Promise<SourceResult<SourceRef>> {
  const spooled = await findSpooled(target.bucket, target.prefix);
  if (spooled) return { ok: true, value: { kind: 'object', ...spooled } };
  const { copyTimeoutMs = Number.POSITIVE_INFINITY } = target;
  const startedAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    const result = await tryResolve(client, url, target);
    // Who did not answer in time, or broke off late, has held up the step for long enough; the queue asks again.
    const isLate = Date.now() - startedAt > RETRY_SHARE * copyTimeoutMs;
    const isOver = result.ok || !isPassing(result.error.kind) || result.error.kind === 'timeout' || isLate;
    if (isOver || attempt >= client.backoffMs.length) return result;
    await sleep(client.backoffMs[attempt]);
  }
}

/** Machines behind one address take turns, or are drawn by lot: with two of them one in 250 files is not found. */
const MOST_TRIES_FOR_PINNED = 8;
const PAUSE_FOR_PINNED_MS = 100;

/**
 * Copies the file that a reference pins in one piece. Where several machines answer at one address and do not agree on the file's tag, it is asked for until
 * the one answers that has it: what was read of it before goes with the copy. Running it again reuses a finished copy.
 *
 * @returns `changed` where no answer is that file
 */
export async function copyPinned(
  client: HttpClient,
  ref: HttpRef,
  target: Omit<SpoolTarget, 'copiesAll' | 'isWhole'>,
): Promise<SourceResult<SourceRef>> {
  const spooled = await findSpooled(target.bucket, target.prefix);
  if (spooled) return pinnedCopy(spooled, ref);
  for (let attempt = 1; attempt <= MOST_TRIES_FOR_PINNED; attempt++) {
    const whole = await get(client, ref.url, {});
    if (!whole.ok) return whole;
    const { status, headers } = whole.value.response;
    if (status === 200 && ref.validator !== undefined && validatorOf(headers) === ref.validator) {
      const stored = await spoolBody(whole.value, target);
      return stored.ok ? pinnedCopy(stored.value, ref) : stored;
    }
    await whole.value.cancel();
    if (status !== 200) return { ok: false, error: failedStatus(whole.value) };
    await sleep(PAUSE_FOR_PINNED_MS);
  }
  return { ok: false, error: CHANGED };
}

const pinnedCopy = ({ key, sizeBytes }: Spooled, ref: HttpRef): SourceResult<SourceRef> =>
  sizeBytes === ref.sizeBytes ? { ok: true, value: { kind: 'object', key, sizeBytes } } : { ok: false, error: CHANGED };

async function tryResolve(client: HttpClient, url: string, target: SpoolTarget): Promise<SourceResult<SourceRef>> {
  const found = target.isWhole ? undefined : await tryRanges(client, url, target);
  if (found && (found.ok || !isOfParts(found.error.kind))) return found;
  const whole = await copyWhole(client, url, target);
  // Where the whole is no better, what is wrong with the parts says more.
  return !whole.ok && found?.error.kind === 'incomplete' ? found : whole;
}

async function copyWhole(client: HttpClient, url: string, target: SpoolTarget): Promise<SourceResult<SourceRef>> {
  const whole = await get(client, url, {});
  if (!whole.ok) return whole;
  if (whole.value.response.status === 200) return spoolBody(whole.value, target);
  await whole.value.cancel();
  return { ok: false, error: failedStatus(whole.value) };
}

/** undefined where only the whole file is of use. */
async function tryRanges(
  client: HttpClient,
  url: string,
  target: SpoolTarget,
): Promise<SourceResult<SourceRef> | undefined> {
  const opened = await get(client, url, { Range: `bytes=0-${PROBE_BYTES - 1}` });
  if (!opened.ok) return opened;
  const probe = opened.value;
  if (probe.response.status === 200) return spoolBody(probe, target);
  let inPlace: HttpRef | undefined;
  try {
    if (probe.response.status === 416) {
      if (/\/0$/.test(probe.response.headers.get('Content-Range') ?? '')) return { ok: false, error: EMPTY };
    } else if (probe.response.status === 206) {
      const ranged = await fromRanges(probe, url, target.maxBytes);
      if (ranged && !(ranged.ok && target.copiesAll)) return ranged;
      inPlace = ranged?.value;
    } else {
      return { ok: false, error: failedStatus(probe) };
    }
  } finally {
    await probe.cancel();
  }
  return inPlace && copyRanges(client, inPlace, target);
}

function failedStatus({ response, url }: Opened) {
  return response.status === 204 ? EMPTY : statusError(url.host, response.status);
}

type ObjectRef = Extract<SourceRef, { kind: 'object' }>;

/** undefined when the server's ranges are of no use. */
async function fromRanges(probe: Opened, url: string, maxBytes: number): Promise<SourceResult<HttpRef> | undefined> {
  const { headers } = probe.response;
  const range = parseContentRange(headers.get('Content-Range'));
  const validator = validatorOf(headers);
  if (range?.start !== 0 || range.total === undefined || isEncoded(headers)) return undefined;
  if (range.total > maxBytes) return { ok: false, error: tooLarge(maxBytes) };
  if (validator === undefined || isSigned(new URL(url))) return undefined;
  if (isHtml(headers)) {
    try {
      for await (const chunk of probe.chunks()) {
        if (textKind(chunk) === 'a web page') return webPage(probe);
        break;
      }
    } catch (error) {
      if (error instanceof SourceReadError) return { ok: false, error: error.error };
      throw error;
    }
  }
  return { ok: true, value: { kind: 'http', url, validator, sizeBytes: range.total } };
}

async function copyRanges(client: HttpClient, ref: HttpRef, target: SpoolTarget): Promise<SourceResult<SourceRef>> {
  const source = new HttpSource(client, ref, { isPatient: true });
  const chunks = async function* () {
    const startedAt = Date.now();
    let bytes = FEWEST_COPY_BYTES;
    for (let at = 0; at < ref.sizeBytes; at += bytes) {
      if (at > 0) bytes = copyBytes(at / ((Date.now() - startedAt) / 1000));
      yield await source.read(at, bytes);
    }
  };
  try {
    const stored = await spool(target.bucket, target.prefix, chunks(), boundsOf(target, new URL(ref.url).host));
    if (!stored.ok) return stored;
    return { ok: true, value: { kind: 'object', ...stored.value } };
  } finally {
    source.close();
  }
}

async function spoolBody(
  opened: Opened,
  target: Omit<SpoolTarget, 'copiesAll' | 'isWhole'>,
): Promise<SourceResult<ObjectRef>> {
  const { headers } = opened.response;
  const declared = contentLength(headers);
  const refused =
    declared !== undefined && declared > target.maxBytes
      ? tooLarge(target.maxBytes)
      : declared === 0
        ? EMPTY
        : isRadio(headers)
          ? endless(opened.url.host)
          : undefined;
  if (refused) {
    await opened.cancel();
    return { ok: false, error: refused };
  }
  const checked = checkedChunks(opened, declared);
  const stored = await spool(target.bucket, target.prefix, checked, boundsOf(target, opened.url.host));
  if (!stored.ok) return stored;
  return { ok: true, value: { kind: 'object', ...stored.value } };
}

/** @param bytesPerSecond of what has come so far; no number or infinite where no time has passed */
function copyBytes(bytesPerSecond: number): number {
  const bytes = Math.floor(bytesPerSecond * COPY_SECONDS);
  return Math.max(FEWEST_COPY_BYTES, Math.min(MOST_COPY_BYTES, bytes || MOST_COPY_BYTES));
}

const boundsOf = (
  { maxBytes, copyTimeoutMs, signal }: Pick<SpoolTarget, 'maxBytes' | 'copyTimeoutMs' | 'signal'>,
  host: string,
): SpoolBounds => ({
  maxBytes,
  timeoutMs: copyTimeoutMs,
  host,
  signal,
});

/** The body, refused when it is a web page, or shorter than it said. */
async function* checkedChunks(opened: Opened, declared: number | undefined): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const chunk of opened.chunks()) {
    if (sizeBytes === 0 && isHtml(opened.response.headers) && textKind(chunk) === 'a web page') {
      throw new SourceReadError(webPage(opened).error);
    }
    sizeBytes += chunk.length;
    yield chunk;
  }
  if (declared !== undefined && sizeBytes < declared) {
    throw new SourceReadError({ kind: 'unreachable', message: `The connection to ${opened.url.host} broke off.` });
  }
}

const isHtml = (headers: Headers): boolean =>
  /^(text\/html|application\/xhtml)/i.test(headers.get('Content-Type') ?? '');

const webPage = ({ url }: Opened) =>
  refuse('web_page', `The address on ${url.host} leads to a web page, not to a recording.`);
