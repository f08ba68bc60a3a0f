import { z } from '@hono/zod-openapi';

export const KEY_TEST_ANSWER = { status: 'OK', message: 'Your API key works.' } as const;

export const keyTestSchema = z
  .object({ status: z.literal('OK'), message: z.string() })
  .openapi('KeyTest', { example: KEY_TEST_ANSWER });
