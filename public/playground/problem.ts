import type { ClientError, JobState } from '../../client/sdk/types.ts';

/** A fault in words for the user. */
export interface Problem {
  readonly message: string;
  readonly details: readonly string[];
  /** The service does not know the key. */
  readonly isOfKey?: boolean;
}

/** Advice by status, for answers without advice. */
const REMEDIES: Readonly<Record<number, string>> = {
  401: 'Was the whole key copied? npm start prints it, npm run key makes a new one.',
  402: 'Give the account credit or a subscription: npm run account.',
};

const SCOPE_REMEDY = 'Make a key with this scope: npm run key -- --account NAME --scopes …';

/** A failed call in words. */
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

/** A job that ended without a result, in words. */
export function problemOfJob({ jobId, status, output }: JobState): Problem {
  const fault = output && 'error' in output ? output : undefined;
  const message = fault?.error ?? `The job is ${status}.`;
  return { message, details: [...(fault?.code ? [`Code ${fault.code}`] : []), `Job ${jobId}`] };
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
