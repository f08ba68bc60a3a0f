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
};

const SCOPE_REMEDY = 'Make a key that has it: npm run key -- --account NAME --scopes …';

/** An answer, or the lack of one, in words. */
export function problemOf(error: ClientError): Problem {
  if (error.kind !== 'refused') return { message: sentence(error.message), details: [] };
  const remedy = /lacks the scope/.test(error.message) ? SCOPE_REMEDY : REMEDIES[error.status];
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
