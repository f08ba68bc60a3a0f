import type { Context, MiddlewareHandler } from 'hono';
import type { AppServices, Principal } from '../jobs/app-services.ts';
import type { Slot } from '../jobs/upload-bodies.ts';

/** Values that the middleware sets in a request's context. */
export interface AppVariables {
  requestId: string;
  services: AppServices;
  /** Set by `authenticate`. */
  principal: Principal;
  /** The slot of a request whose body is not small; released after the answer. */
  bodySlot?: Slot;
  /** Set if errors are answered in OpenAI's form. */
  errorForm?: 'openai';
  /** State of the account's rate window; unset for requests without a key. */
  rate?: { readonly exceeded: boolean; readonly resetSeconds: number };
}

export interface AppEnv {
  Bindings: object;
  Variables: AppVariables;
}

export type AppContext = Context<AppEnv>;
export type AppMiddleware = MiddlewareHandler<AppEnv>;
