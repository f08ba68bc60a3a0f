import { AwsV4Signer } from 'aws4fetch';
import { toHex } from '../audio/bytes.ts';
import { type MediaService, type MediaUpload, RECORDING_MAX_BYTES } from '../jobs/app-services.ts';
import { findRateLimits } from './api-keys.ts';
import { createMediaRows, type MediaRow, type MediaRows } from './d1/media-rows.ts';
import { objectBody } from './r2-objects.ts';
import { storeUpload } from './r2-uploads.ts';
import { importSigningKey, importSigningKeys, type SigningKeys, signTicket, verifyTicket } from './signed-tokens.ts';

const HOUR_MS = 3600 * 1000;
/** The contract requires at least an hour. An upload must begin within this time; it may end later. */
const TICKET_TTL_MS = 2 * HOUR_MS;
export const MEDIA_TTL_MS = 48 * HOUR_MS;
/**
 * Longest difference between the clocks of machines: a job right after an upload must get the new recording.
 */
const CLOCK_SLACK_MS = 2000;

export interface MediaDependencies extends SigningKeys {
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  /** If set, bytes go to and from the bucket directly instead of through the Worker. */
  readonly s3?: S3Credentials;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
}

/** A recording's object; the ETag pins it if an upload address can overwrite its key. */
interface Recording {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag?: string;
  readonly expiresAt: number;
}

/** Uploaded recordings, each private to its account. Names are those after `media://`. */
export interface MediaStore extends MediaService {
  /**
   * The object that had a recording's name at `asOf` (default: now), even if it was replaced since; without one, the
   * current object. Undefined if there is none that had not expired at `asOf`.
   */
  resolve(accountId: string, name: string, asOf?: number): Promise<Recording | undefined>;
}

/**
 * Recordings in R2, their names in D1. Every upload gets a new object under a key that cannot be guessed; the name
 * moves to the object when it is complete, so that an interrupted upload leaves the previous recording in place.
 */
export function createMediaService({ db, bucket, s3, now, ...signingKeys }: MediaDependencies): MediaStore {
  const rows = createMediaRows(db);
  const direct = s3 && createDirectUploads(bucket, rows, s3);
  const ticketFor = async (kind: 'upload' | 'download', accountId: string, name: string) =>
    signTicket(kind, { accountId, name }, now() + TICKET_TTL_MS, await importSigningKey(signingKeys.signingKey));

  const resolve = async (accountId: string, name: string, asOf = now()): Promise<Recording | undefined> => {
    const since = asOf - MEDIA_TTL_MS;
    const recordingThen = later(
      await rows.findAsOf(accountId, name, asOf, CLOCK_SLACK_MS),
      await direct?.latest(accountId, name, since, asOf + CLOCK_SLACK_MS),
    );
    return (
      recordingThen ??
      later(
        await rows.find(accountId, name, asOf),
        await direct?.latest(accountId, name, since, Number.POSITIVE_INFINITY),
      )
    );
  };

  const storeAs =
    (accountId: string, name: string): MediaUpload['store'] =>
    async (body, contentLength) => {
      const objectKey = `media/${accountId}/${crypto.randomUUID()}`;
      // If this process crashes before `publish`, the sweep finds the object by the claim.
      await rows.claim(accountId, objectKey, now(), now() + MEDIA_TTL_MS);
      const facts = { contentLength, maxBytes: RECORDING_MAX_BYTES, accountId };
      const stored = await storeUpload(bucket, objectKey, body, facts);
      if (!stored.ok) {
        await rows.dropClaim(accountId, objectKey);
        return stored;
      }
      await rows.publish(accountId, name, objectKey, stored.value.sizeBytes, now(), now() + MEDIA_TTL_MS);
      return stored;
    };

  return {
    resolve,

    async createUpload(accountId, name, origin) {
      if (direct) return { url: await direct.createAddress(accountId, name, now(), TICKET_TTL_MS, MEDIA_TTL_MS) };
      return { url: `${origin}/v1/media/upload/${await ticketFor('upload', accountId, name)}` };
    },

    async findUpload(ticket) {
      const verified = await verifyTicket('upload', ticket, now(), await importSigningKeys(signingKeys));
      if (!verified.ok) return verified;
      const { accountId, name } = verified.value;
      const rateLimits = await findRateLimits(db, accountId);
      if (!rateLimits) return refused('bad_ticket');
      return { ok: true, value: { accountId, rateLimits, store: storeAs(accountId, name) } };
    },

    store: (accountId, name, body) => storeAs(accountId, name)(body, undefined),

    expire: (accountId, name) => rows.expire(accountId, name, now()),

    async createDownload(accountId, name, origin) {
      const recording = await resolve(accountId, name);
      if (!recording) return undefined;
      // The bucket does not enforce the 48 hours, so the address must not outlive them.
      const ttlMs = Math.min(TICKET_TTL_MS, recording.expiresAt - now());
      if (direct) return { url: await direct.downloadAddress(recording.key, now(), ttlMs) };
      return { url: `${origin}/v1/media/download/${await ticketFor('download', accountId, name)}` };
    },

    async findDownload(ticket) {
      const verified = await verifyTicket('download', ticket, now(), await importSigningKeys(signingKeys));
      if (!verified.ok) return verified;
      const { accountId, name } = verified.value;
      const recording = await resolve(accountId, name);
      const object = recording && (await bucket.head(recording.key));
      if (!object) return refused('not_found');
      const { key, size: sizeBytes, etag, httpEtag } = object;
      // Without FixedLengthStream the answer would have no Content-Length.
      const open = (range: { offset: number; length: number }) =>
        objectBody(bucket, { key, sizeBytes, etag }, range).pipeThrough(new FixedLengthStream(range.length));
      return { ok: true, value: { name, sizeBytes, etag: httpEtag, open } };
    },
  };
}

function later(named: MediaRow | undefined, direct: StoredMedia | undefined): Recording | undefined {
  if (!direct || (named && named.uploadedAt > direct.uploadedAt)) return named;
  return { ...direct, expiresAt: direct.uploadedAt + MEDIA_TTL_MS };
}

function refused<K extends string>(kind: K): { readonly ok: false; readonly error: { readonly kind: K } } {
  return { ok: false, error: { kind } };
}

export interface StoredMedia {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag: string;
  /** When it was written, in milliseconds since the Unix epoch. */
  readonly uploadedAt: number;
}

const LIST_PAGE = 1000;

/**
 * Uploads that go to the bucket directly. Each address has a new key in a folder of the recording, so
 * that a list of the folder shows its uploads; the latest one counts. A row of `media` makes the sweep delete the
 * object when it expires, even if it was never read.
 */
export function createDirectUploads(bucket: R2Bucket, rows: MediaRows, credentials: S3Credentials) {
  return {
    /**
     * @param ttlMs lifetime of the address
     * @param mediaTtlMs longest lifetime of the stored object after that
     */
    async createAddress(
      accountId: string,
      name: string,
      now: number,
      ttlMs: number,
      mediaTtlMs: number,
    ): Promise<string> {
      const key = `${await folderOf(accountId, name)}${crypto.randomUUID()}`;
      await rows.claim(accountId, key, now, now + ttlMs + mediaTtlMs, name);
      return presign(credentials, { method: 'PUT', key, expiresSeconds: Math.floor(ttlMs / 1000) }, now);
    },

    downloadAddress: (key: string, now: number, ttlMs: number) =>
      presign(credentials, { method: 'GET', key, expiresSeconds: Math.max(1, Math.floor(ttlMs / 1000)) }, now),

    /** The latest upload of a recording since that moment, and until another. */
    async latest(accountId: string, name: string, since: number, until: number): Promise<StoredMedia | undefined> {
      let latest: StoredMedia | undefined;
      let cursor: string | undefined;
      do {
        const page = await bucket.list({ prefix: await folderOf(accountId, name), limit: LIST_PAGE, cursor });
        for (const { key, size, etag, uploaded } of page.objects) {
          const uploadedAt = uploaded.getTime();
          if (uploadedAt <= since || uploadedAt > until || uploadedAt < (latest?.uploadedAt ?? 0)) continue;
          latest = { key, sizeBytes: size, etag, uploadedAt };
        }
        cursor = page.truncated ? page.cursor : undefined;
      } while (cursor !== undefined);
      return latest;
    },
  };
}

/** Hashed, because names can be long and private. */
async function folderOf(accountId: string, name: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(name)));
  const hex = toHex(digest);
  return `media/${accountId}/${hex}/`;
}

/** Access to the bucket through the S3 interface. */
export interface S3Credentials {
  /** Address of the bucket, without a trailing slash. */
  readonly bucketUrl: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** R2 has the one region `auto`. */
  readonly region: string;
}

/**
 * An address that permits one operation on one object, until it expires. Of the headers only
 * the host is signed, so that the sender may use any Content-Type.
 *
 * @param now milliseconds since the Unix epoch
 */
export async function presign(
  { bucketUrl, accessKeyId, secretAccessKey, region }: S3Credentials,
  request: { readonly method: 'GET' | 'PUT'; readonly key: string; readonly expiresSeconds: number },
  now: number,
): Promise<string> {
  const url = new URL(`${bucketUrl}/${request.key.split('/').map(encodeURIComponent).join('/')}`);
  url.searchParams.set('X-Amz-Expires', String(request.expiresSeconds));
  const signer = new AwsV4Signer({
    method: request.method,
    url: url.href,
    accessKeyId,
    secretAccessKey,
    region,
    service: 's3',
    signQuery: true,
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ''),
  });
  const signed = await signer.sign();
  return signed.url.toString();
}
