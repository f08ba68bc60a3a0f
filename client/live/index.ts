/** Client of live streams, for browsers and Node. In Node 20 pass `nodeWebSocket` of `./node.ts`. */
export { RollcallClient } from '../sdk/client.ts';
export { FRAME_SAMPLES, SAMPLE_RATE_HZ } from './framer.ts';
export { type ConnectionOptions, connectLiveStream, type OpenOptions, openLiveStream } from './open.ts';
export { LiveStream } from './stream.ts';
export { collectTurns, type LiveTurn, TurnCollector } from './turns.ts';
export type { LiveClose, LiveEvent, WebSocketConstructor, WebSocketLike } from './types.ts';
