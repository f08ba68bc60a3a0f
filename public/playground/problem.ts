import type { ClientError, JobState } from '../../client/sdk/types.ts';

/** A fault, described for the user. */
export interface Problem {
  readonly message: string;
  readonly details: readonly string[];
  /** Whether the service does not accept the key. */
  readonly isKeyFault?: boolean;
}

/** Advice by HTTP status, for answers without advice. */
const REMEDIES: Readonly<Record<number, string>> = {
  401: 'Was the whole key copied? npm start prints it, npm run key creates a new one.',
  402: 'Give the account credit or a subscription: npm run account.',
};

const SCOPE_REMEDY = 'Create a key with this scope: npm run key -- --account NAME --scopes …';

/** Describes a failed call. */
export function problemOf(error: ClientError): Problem {
  if (error.kind !== 'refused') return { message: sentence(error.message), details: [] };
  const remedy = /lacks the scope/.test(error.message) ? SCOPE_REMEDY : REMEDIES[error.status];
  return {
    message: sentence(error.message),
    ...(error.status === 401 && { isKeyFault: true }),
    details: [
      ...(error.fields ?? []).map(({ field, message }) =>
        sentence(/^[A-Z]/.test(message) ? message : `${field} ${message}`),
      ),
      ...(remedy === undefined ? [] : [remedy]),
      ...(error.requestId === undefined ? [] : [`Request ${error.requestId}`]),
    ],
  };
}

/** Describes a job that ended without a result. */
export function problemOfJob({ jobId, status, output }: JobState): Problem {
  const fault = output && 'error' in output ? output : undefined;
  const message = fault?.error ?? `The job is ${status}.`;
  return { message, details: [...(fault?.code ? [`Code ${fault.code}`] : []), `Job ${jobId}`] };
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
