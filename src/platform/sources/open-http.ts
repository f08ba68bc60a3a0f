import { textKind } from '../../audio/sniff.ts';
import {
  EMPTY,
  endless,
  type SourceError,
  SourceReadError,
  type SourceResult,
  statusError,
  tooLarge,
} from './errors.ts';
import { get, type HttpClient, type Opened } from './http-client.ts';
import { contentLength, isEncoded, isRadio, parseContentRange, validatorOf } from './http-headers.ts';
import { HttpSource } from './http-source.ts';

/** What an address leads to. */
export interface OpenedHttp {
  readonly answer: Opened;
  /** Undefined where the server does not say. */
  readonly sizeBytes: number | undefined;
  /** What pins the file; undefined where nothing does. */
  readonly validator: string | undefined;
  readonly hasRanges: boolean;
  /** The first bytes, which were looked at; they come again with the body. */
  readonly chunks: () => AsyncGenerator<Uint8Array>;
}

/** Asks for a recording from its first byte on, and refuses what cannot be one. One try. */
export async function openHttp(client: HttpClient, url: string, maxBytes: number): Promise<SourceResult<OpenedHttp>> {
  const asked = await get(client, url, { Range: 'bytes=0-' });
  if (!asked.ok) return asked;
  const answer = asked.value;
  const refused = async (error: SourceError) => {
    await answer.cancel();
    return { ok: false, error } as const;
  };
  const { status, headers } = answer.response;
  const { host } = answer.url;
  if (status === 416 && /\/0$/.test(headers.get('Content-Range') ?? '')) return refused(EMPTY);
  // A server that takes a range for an error may give the whole file, and so may one whose ranges are of no use.
  if (status === 416 || status === 400 || status === 501 || (status === 206 && !isUsable(headers))) {
    await answer.cancel();
    return openWhole(client, url, maxBytes);
  }
  if (status !== 200 && status !== 206) return refused(status === 204 ? EMPTY : statusError(host, status));
  return describe(answer, maxBytes);
}

/** Whether a part is the whole file, or of a file that the rest can be asked for. */
function isUsable(headers: Headers): boolean {
  const range = parseContentRange(headers.get('Content-Range'));
  if (range?.start !== 0 || range.total === undefined || isEncoded(headers)) return false;
  return range.end === range.total - 1 || validatorOf(headers) !== undefined;
}

async function openWhole(client: HttpClient, url: string, maxBytes: number): Promise<SourceResult<OpenedHttp>> {
  const asked = await get(client, url, {});
  if (!asked.ok) return asked;
  if (asked.value.response.status === 200) return describe(asked.value, maxBytes);
  await asked.value.cancel();
  return { ok: false, error: statusError(asked.value.url.host, asked.value.response.status) };
}

async function describe(answer: Opened, maxBytes: number): Promise<SourceResult<OpenedHttp>> {
  const { headers, status } = answer.response;
  const hasRanges = status === 206;
  const sizeBytes = hasRanges ? parseContentRange(headers.get('Content-Range'))?.total : contentLength(headers);
  const error =
    sizeBytes !== undefined && sizeBytes > maxBytes
      ? tooLarge(maxBytes)
      : sizeBytes === 0
        ? EMPTY
        : !hasRanges && isRadio(headers)
          ? endless(answer.url.host)
          : undefined;
  if (error) {
    await answer.cancel();
    return { ok: false, error };
  }
  const validator = isEncoded(headers) ? undefined : validatorOf(headers);
  const chunks = checked(answer);
  return { ok: true, value: { answer, sizeBytes, validator, hasRanges, chunks: () => chunks } };
}

/** Of these a web page is recognised. */
const HEAD_BYTES = 1024;

/** The body, refused when it is a web page. */
async function* checked({ response, url, chunks }: Opened): AsyncGenerator<Uint8Array> {
  const body = chunks();
  try {
    if (/^(text\/html|application\/xhtml)/i.test(response.headers.get('Content-Type') ?? '')) {
      const head = await headOf(body);
      if (textKind(head) === 'a web page') {
        const message = `The address on ${url.host} leads to a web page, not to a recording.`;
        throw new SourceReadError({ kind: 'web_page', message });
      }
      yield head;
    }
    yield* body;
  } finally {
    await body.return(undefined);
  }
}

async function headOf(body: AsyncGenerator<Uint8Array>): Promise<Uint8Array> {
  const head: number[] = [];
  let rest = new Uint8Array(0);
  while (head.length < HEAD_BYTES) {
    const next = await body.next();
    if (next.done) break;
    const missing = HEAD_BYTES - head.length;
    head.push(...next.value.subarray(0, missing));
    rest = next.value.slice(missing);
  }
  const all = new Uint8Array(head.length + rest.length);
  all.set(head);
  all.set(rest, head.length);
  return all;
}

/**
 * The recording for one forward pass; undefined where it can only be copied: nothing pins it, or its size is not known.
 */
export function pinned(client: HttpClient, opened: OpenedHttp, url: string): HttpSource | undefined {
  const { sizeBytes, validator, hasRanges, answer, chunks } = opened;
  if (sizeBytes === undefined || validator === undefined) return undefined;
  return new HttpSource(client, { url, sizeBytes, validator, hasRanges }, { ...answer, chunks });
}
