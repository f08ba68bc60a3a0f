import { AwsV4Signer } from 'aws4fetch';

/** Where and as whom objects are addressed through the S3 interface. */
export interface S3Credentials {
  /** Address of the bucket, without a trailing slash. */
  readonly bucketUrl: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** R2 has the one region `auto`. */
  readonly region: string;
}

/**
 * An address that lets whoever has it do one thing with one object, until it expires. The host is all that is signed of
 * the headers: the sender is free in its Content-Type.
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
