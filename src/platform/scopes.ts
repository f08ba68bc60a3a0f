import { SCOPES, type Scope } from '../jobs/app-services.ts';

/** Scopes as a token and a row of `api_keys` hold them: separated by single spaces. */
export function formatScopes(scopes: readonly Scope[]): string {
  return scopes.join(' ');
}

/** The known scopes in a text of scopes; others are left out. */
export function parseScopes(text: string): Scope[] {
  const named = new Set(text.split(' '));
  return SCOPES.filter((scope) => named.has(scope));
}
