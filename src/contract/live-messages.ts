import { z } from '@hono/zod-openapi';

/** Longest text that is looked at; the one message there is has 24 characters. */
const MAX_TEXT_CHARS = 1024;

/** The text messages of a client. */
const clientMessageSchema = z.object({ type: z.literal('end_of_stream') });
export type ClientMessage = z.infer<typeof clientMessageSchema>;

/** A speaker begins or ends a turn; `match` only where voiceprints were given. */
export interface SpeakerMessage {
  readonly type: 'diarization_speaker_start' | 'diarization_speaker_end';
  readonly data: {
    /** Seconds from the start of the stream. */
    readonly timestamp: number;
    readonly speaker: string;
    readonly match?: string | null;
  };
}

/** Only where corrections were asked for: what was told of `from` between `start` and `end` is `to`'s. All changes apply at once. */
export interface CorrectionMessage {
  readonly type: 'diarization_speaker_correction';
  readonly data: {
    readonly changes: readonly {
      /** Seconds from the start of the stream. */
      readonly start: number;
      readonly end: number;
      readonly from: string;
      readonly to: string;
    }[];
  };
}

export interface ErrorMessage {
  readonly type: 'error';
  readonly message: string;
}

/** Only where it was asked for: what a connection after this one needs to resume the stream. */
export interface ResumeMessage {
  readonly type: 'resume';
  readonly token: string;
  /** Number of frames that the service has stored; a resumed stream continues after them. */
  readonly frame: number;
}

/** First message of a connection that resumes a stream: the client sends the frames from `frame` on. */
export interface ResumedMessage {
  readonly type: 'resumed';
  readonly frame: number;
}

export type ServerMessage = SpeakerMessage | CorrectionMessage | ErrorMessage | ResumeMessage | ResumedMessage;

/** What a text frame of a client says; undefined for everything that is no message of the contract. */
export function parseClientMessage(text: string): ClientMessage | undefined {
  if (text.length > MAX_TEXT_CHARS) return undefined;
  try {
    return clientMessageSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
