import type { ClientError, JobState } from '../../client/sdk/types.ts';

/** What went wrong, for a person. */
export interface Problem {
  readonly message: string;
  readonly details: readonly string[];
  /** The service does not know the key. */
  readonly isOfKey?: boolean;
}

/** What to do about an answer, where the answer itself does not say. */
const REMEDIES: Readonly<Record<number, string>> = {
  401: 'Has all of it been copied? npm start prints it, npm run key makes a new one.',
  402: 'Give the account credit or a subscription: npm run account.',
  403: 'Use a key with this scope: npm run key -- --scopes …',
};

/** An answer, or the lack of one, in words. */
export function problemOf(error: ClientError): Problem {
  if (error.kind !== 'refused') return { message: sentence(error.message), details: [] };
  const remedy = REMEDIES[error.status];
  return {
    message: sentence(error.message),
    ...(error.status === 401 && { isOfKey: true }),
    details: [
      ...(error.fields ?? []).map(({ field, message }) =>
        sentence(/^[A-Z]/.test(message) ? message : `${field} ${message}`),
      ),
      ...(remedy === undefined ? [] : [remedy]),
      ...(error.requestId === undefined ? [] : [`Request ${error.requestId}`]),
    ],
  };
}

/** A job that ended without a result. */
export function problemOfJob({ jobId, status, output }: JobState): Problem {
  const told = output && 'error' in output ? output : undefined;
  const message = told?.error ?? `The job is ${status}.`;
  return { message, details: [...(told?.code ? [`Code ${told.code}`] : []), `Job ${jobId}`] };
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
