import { z } from '@hono/zod-openapi';

export const keyTestSchema = z.object({ status: z.literal('OK'), message: z.string() }).openapi('KeyTest');

export const KEY_TEST_ANSWER: z.infer<typeof keyTestSchema> = { status: 'OK', message: 'Your API key works.' };
