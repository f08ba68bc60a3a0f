import { z } from 'zod';

/** The messages of a Twilio media stream that matter here; their other fields are ignored. */
const twilioMessageSchema = z.discriminatedUnion('event', [
  z.object({ event: z.enum(['connected', 'start', 'stop', 'mark', 'dtmf']) }),
  z.object({ event: z.literal('media'), media: z.object({ track: z.string().optional(), payload: z.string() }) }),
]);

/** What a message of a Twilio media stream says. */
export type TwilioMessage =
  /** @param payload in base64 */
  | { readonly kind: 'audio'; readonly payload: string }
  | { readonly kind: 'end' }
  /** About the call, or of its other side. */
  | { readonly kind: 'other' };

/** @returns undefined for a text that is no such message */
export function parseTwilioMessage(text: string): TwilioMessage | undefined {
  try {
    const message = twilioMessageSchema.parse(JSON.parse(text));
    if (message.event !== 'media') return { kind: message.event === 'stop' ? 'end' : 'other' };
    // Of a call with both tracks, which would come one after the other here, the caller's is heard.
    if ((message.media.track ?? 'inbound') !== 'inbound') return { kind: 'other' };
    return { kind: 'audio', payload: message.media.payload };
  } catch {
    return undefined;
  }
}
