import { expect, it } from 'vitest';
import { presign } from './s3-presign.ts';

/** The account and the moment of AWS's own worked example of a presigned address. */
const EXAMPLE = {
  bucketUrl: 'https://examplebucket.s3.amazonaws.com',
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const MOMENT = Date.UTC(2013, 4, 24);

it("signs AWS's published example as AWS does", async () => {
  const url = new URL(await presign(EXAMPLE, { method: 'GET', key: 'test.txt', expiresSeconds: 86400 }, MOMENT));
  expect(Object.fromEntries(url.searchParams)).toEqual({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request',
    'X-Amz-Date': '20130524T000000Z',
    'X-Amz-Expires': '86400',
    'X-Amz-SignedHeaders': 'host',
    'X-Amz-Signature': 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  });
});

it('binds the signature to method, key and time, and to no Content-Type', async () => {
  const sign = async (method: 'GET' | 'PUT', key: string, now = MOMENT) => {
    const url = new URL(await presign(EXAMPLE, { method, key, expiresSeconds: 7200 }, now));
    expect(url.searchParams.get('X-Amz-SignedHeaders')).toBe('host');
    return url.searchParams.get('X-Amz-Signature');
  };
  const signatures = [
    await sign('GET', 'a/b'),
    await sign('PUT', 'a/b'),
    await sign('PUT', 'a/c'),
    await sign('PUT', 'a/b', MOMENT + 1000),
  ];
  expect(new Set(signatures).size).toBe(4);
});
