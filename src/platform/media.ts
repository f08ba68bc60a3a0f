import type { MediaService } from '../jobs/app-services.ts';
import { createMediaRows } from './d1/media-rows.ts';
import { signUploadTicket, verifyUploadTicket } from './media-ticket.ts';
import { storeBody } from './r2-upload.ts';
import { importSigningKey } from './signing-key.ts';

export const UPLOAD_MAX_BYTES = 1024 ** 3;
const HOUR_MS = 3600 * 1000;
/** The contract asks for an hour at least; the start of an upload is what counts. */
const TICKET_TTL_MS = 2 * HOUR_MS;
export const MEDIA_TTL_MS = 48 * HOUR_MS;

export interface MediaDependencies {
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  /** base64 of at least 32 bytes */
  readonly signingKey: string;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
}

/** Uploaded recordings, each private to its account. Names are those after `media://`. */
export interface MediaStore extends MediaService {
  /** The stored object of a recording; undefined when there is none or it is past its 48 hours. */
  resolve(accountId: string, name: string): Promise<{ readonly key: string; readonly sizeBytes: number } | undefined>;
}

/**
 * Recordings in R2, their names in D1. Every upload gets an object of its own under a key that nobody can guess; the name
 * moves to it once it is whole, so that an upload that breaks off leaves the recording of before in place.
 */
export function createMediaService({ db, bucket, signingKey, now }: MediaDependencies): MediaStore {
  const rows = createMediaRows(db);
  return {
    async createUpload(accountId, name, origin) {
      const secret = await importSigningKey(signingKey);
      const ticket = await signUploadTicket({ accountId, name }, now() + TICKET_TTL_MS, secret);
      return { url: `${origin}/v1/media/upload/${ticket}` };
    },

    async acceptUpload(ticket, body, contentLength) {
      const verified = await verifyUploadTicket(ticket, now(), await importSigningKey(signingKey));
      if (!verified.ok) return verified;
      if (contentLength !== undefined && contentLength > UPLOAD_MAX_BYTES) return refused('too_large');
      if (!body || contentLength === 0) return refused('empty');

      const { accountId, name } = verified.value;
      const objectKey = `media/${accountId}/${crypto.randomUUID()}`;
      // The claim is what the sweep finds should this process die before the name points to the object.
      await rows.claim(accountId, objectKey, now(), now() + MEDIA_TTL_MS);
      const stored = await storeBody(bucket, objectKey, body, { contentLength, maxBytes: UPLOAD_MAX_BYTES });
      if (!stored.ok) {
        await rows.dropClaim(accountId, objectKey);
        return stored;
      }
      await rows.publish(accountId, name, objectKey, stored.value.sizeBytes, now(), now() + MEDIA_TTL_MS);
      return stored;
    },

    resolve: (accountId, name) => rows.find(accountId, name, now()),
  };
}

function refused<K extends string>(kind: K): { readonly ok: false; readonly error: { readonly kind: K } } {
  return { ok: false, error: { kind } };
}
