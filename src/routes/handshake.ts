import type { Refusal } from '../middleware/refusals.ts';

/** The one version there is (RFC 6455 §4.1). */
const WEBSOCKET_VERSION = '13';
/** 16 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;

/** A request as far as its handshake goes. */
export interface Upgrade {
  readonly method: string;
  header(name: string): string | undefined;
}

/**
 * What a WebSocket handshake is refused for (RFC 6455 §4.2), undefined for a good one. Comes before the token is spent: the
 * runtime answers a handshake that it cannot complete with an error of its own only after the Worker has accepted it.
 *
 * @param isDirect whether clients speak to the runtime itself, which then needs all of a handshake. The platform's edge ends
 * clients' connections and need not pass version and key on, so there only what is present is judged.
 */
export function handshakeFault(request: Upgrade, isDirect: boolean): Refusal | undefined {
  // HEAD runs the handlers of GET, and has no connection to give away.
  if (request.method !== 'GET' || request.header('Upgrade')?.toLowerCase() !== 'websocket')
    return { kind: 'upgrade_required' };
  const version = request.header('Sec-WebSocket-Version');
  if (version === undefined ? isDirect : version.trim() !== WEBSOCKET_VERSION) return { kind: 'websocket_version' };
  const key = request.header('Sec-WebSocket-Key');
  if (key === undefined ? !isDirect : KEY.test(key.trim())) return undefined;
  return { kind: 'invalid', errors: [{ field: 'Sec-WebSocket-Key', message: 'must be 16 bytes in base64' }] };
}
