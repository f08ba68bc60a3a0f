import { z } from 'zod';

/** The messages of a Twilio media stream; fields that are not used are ignored. */
const twilioMessageSchema = z.discriminatedUnion('event', [
  z.object({ event: z.enum(['connected', 'start', 'stop', 'mark', 'dtmf']) }),
  z.object({ event: z.literal('media'), media: z.object({ track: z.string().optional(), payload: z.string() }) }),
]);

/** A parsed message of a Twilio media stream. */
export type TwilioMessage =
  /** @param payload in base64 */
  | { readonly kind: 'audio'; readonly payload: string }
  | { readonly kind: 'end' }
  /** Facts of the call, or audio of the other track. */
  | { readonly kind: 'other' };

/** @returns undefined unless the text is a message of a Twilio media stream */
export function parseTwilioMessage(text: string): TwilioMessage | undefined {
  try {
    const message = twilioMessageSchema.parse(JSON.parse(text));
    if (message.event !== 'media') return { kind: message.event === 'stop' ? 'end' : 'other' };
    // Only the caller's track: with both, their frames would follow one another instead of being mixed.
    if ((message.media.track ?? 'inbound') !== 'inbound') return { kind: 'other' };
    return { kind: 'audio', payload: message.media.payload };
  } catch {
    return undefined;
  }
}
