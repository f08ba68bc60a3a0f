import type { Context, MiddlewareHandler } from 'hono';
import type { AppServices, Principal } from '../jobs/app-services.ts';
import type { Place } from '../jobs/upload-bodies.ts';

/** What the middleware puts into a request's context. */
export interface AppVariables {
  requestId: string;
  services: AppServices;
  /** Set after `authenticate` only. */
  principal: Principal;
  /** The place of a request whose body is not small; given back when it has been answered. */
  bodyPlace?: Place;
  /** Set where errors are answered in OpenAI's form. */
  errorForm?: 'openai';
  /** Where the account stands in its rate window; unset for requests without a key. */
  rate?: { readonly exceeded: boolean; readonly resetSeconds: number };
}

export interface AppEnv {
  Bindings: object;
  Variables: AppVariables;
}

export type AppContext = Context<AppEnv>;
export type AppMiddleware = MiddlewareHandler<AppEnv>;
