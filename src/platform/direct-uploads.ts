import { toHex } from '../audio/bytes.ts';
import type { MediaRows } from './d1/media-rows.ts';
import { presign, type S3Credentials } from './s3-presign.ts';

export interface StoredMedia {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag: string;
  /** When it was written, in milliseconds since the Unix epoch. */
  readonly uploadedAt: number;
}

const LIST_PAGE = 1000;

/**
 * Uploads that go to the bucket without passing the Worker. Each address has a new key in a folder of the recording, so
 * that a list of the folder shows its uploads; the latest one counts. A row of `media` makes the sweep delete the
 * object when it expires, even if it was never read.
 */
export function createDirectUploads(bucket: R2Bucket, rows: MediaRows, credentials: S3Credentials) {
  return {
    /** @param ttlMs how long the address is good; `mediaTtlMs` how long what it stored lives after that at most */
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

/** Names can be long and telling; their hash is neither. */
async function folderOf(accountId: string, name: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(name)));
  const hex = toHex(digest);
  return `media/${accountId}/${hex}/`;
}
