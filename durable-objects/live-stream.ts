import { DurableObject } from 'cloudflare:workers';
import type { LiveEnv } from '../src/env.ts';
import { type ChannelEnd, CLOSE, LiveChannel } from '../src/jobs/live/channel.ts';
import { LiveInput } from '../src/jobs/live/input.ts';
import type { LiveOutcome, StreamSetup } from '../src/jobs/live/ports.ts';
import { tokenDigest } from '../src/jobs/live/token.ts';
import { TOKEN_HEADER } from '../src/platform/live-objects.ts';
import { type LiveRuntime, liveRuntime } from '../src/services-live.ts';
import { type StoredStream, StreamStorage } from './live/storage.ts';

/** Silence on the wire before a connection is stored, so that the platform may take the object out of memory. */
const SUSPEND_AFTER_MS = 3000;
/** Until a step that failed is tried again. */
const RETRY_MS = 15_000;
/** How long a closed connection may wait for a client that does not read. */
const LINGER_MS = 10_000;
/** The same for one that never sent anything. Its connection workerd ends only with the object, ten seconds after that was last busy, although the client answers the close. */
const SILENT_LINGER_MS = 2000;

/**
 * One live stream: its token, its connection and, through hibernation, the state of its diarization. The protocol itself is
 * `LiveChannel`. Memory may vanish whenever nothing happens; the alarm then finds in the storage what became of the stream.
 */
export class LiveStream extends DurableObject<LiveEnv> {
  readonly #storage: StreamStorage;
  readonly #runtime: LiveRuntime;
  #channel: LiveChannel | undefined;
  #lastFrameAt = 0;
  #isBehind = false;
  #hasHeard = false;
  #suspendTimer: number | null = null;

  constructor(state: DurableObjectState, env: LiveEnv) {
    super(state, env);
    this.#storage = new StreamStorage(state.storage);
    this.#runtime = liveRuntime(env);
  }

  /** The stream has been created; now its token can be used. */
  async open({ streamId, expiresAt, ...setup }: StreamSetup): Promise<void> {
    this.#storage.stream = { id: streamId, ...setup, phase: { name: 'waiting', expiresAt } };
    await this.ctx.storage.setAlarm(expiresAt);
  }

  async discard(): Promise<void> {
    await this.#storage.forget();
  }

  /** The platform gives an alarm up that has failed a few times, and workerd calls no later one either: what it should have done is done now. */
  async wake(): Promise<boolean> {
    if (!this.#storage.stream) return false;
    await this.alarm();
    return true;
  }

  /** The upgrade, as the Worker passes it on: 101, or 401 where the token is not good for it. */
  override async fetch(request: Request): Promise<Response> {
    const digest = await tokenDigest(request.headers.get(TOKEN_HEADER) ?? '');
    const now = Date.now();
    const stream = this.#storage.burn(digest, now);
    if (!stream) return new Response(null, { status: 401 });
    const { idleMs, connectedMs } = this.#runtime.times;
    await this.ctx.storage.setAlarm(now + Math.min(idleMs, connectedMs));
    if (!(await this.#runtime.store.start(stream.id, now))) return new Response(null, { status: 401 });
    const channel = this.#resume();
    // The database was so slow that the alarm has ended the stream meanwhile: nothing would ever end a connection.
    if (!channel) return new Response(null, { status: 401 });
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    // Before the client may send: else its first seconds would wait for the models.
    await channel.open();
    return new Response(null, { status: 101, webSocket: client });
  }

  override async webSocketMessage(_socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    this.#hasHeard = true;
    const channel = this.#resume();
    if (!channel) return;
    const before = channel.receivedFrames;
    const isAtWork = channel.isAtWork;
    const processed = channel.receive(message);
    if (channel.receivedFrames > before) this.#noteFrame();
    // One waiting event keeps the object at work. If every one waited, a client whose frames never let the queue become empty would make them pile up.
    if (!isAtWork) await processed;
  }

  /** The platform leaves the answer to a client's close to the object; without one the client waits for nothing. */
  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    await this.#resume()?.disconnected();
    try {
      socket.close(isOwnCode(code) ? code : CLOSE.normal);
    } catch {
      // The connection has broken since.
    }
  }

  override async webSocketError(): Promise<void> {
    await this.#resume()?.disconnected();
  }

  override async alarm(): Promise<void> {
    const { stream } = this.#storage;
    if (!stream) return;
    // First the next alarm: whatever fails below is tried again.
    await this.ctx.storage.setAlarm(Date.now() + RETRY_MS);
    switch (stream.phase.name) {
      case 'waiting':
        return this.#settle(stream, { status: 'error', receivedSeconds: 0 });
      case 'ending':
        return this.#settle(stream, stream.phase.outcome);
      case 'running':
        return this.#lookAfter(stream, stream.phase.startedAt);
    }
  }

  /** A stream that runs: closed when it is idle or has lasted too long, ended when its connection died with the process. */
  async #lookAfter(stream: StoredStream, startedAt: number): Promise<void> {
    if (this.ctx.getWebSockets().length === 0) {
      if (this.#channel) return this.#channel.disconnected();
      this.#runtime.log('warn', 'live_connection_lost', { streamId: stream.id });
      return this.#settle(stream, { status: 'error', receivedSeconds: 0 });
    }
    const channel = this.#resume();
    const { idleMs, connectedMs } = this.#runtime.times;
    const idleAt = this.#lastFrameAt + idleMs;
    const endsAt = startedAt + connectedMs;
    const now = Date.now();
    if (now >= endsAt) await channel?.outlast();
    else if (now >= idleAt) await channel?.idle(idleMs);
    else await this.ctx.storage.setAlarm(Math.min(idleAt, endsAt));
  }

  /** The channel of the running stream, out of the storage where memory was lost; undefined for one that does not run. */
  #resume(): LiveChannel | undefined {
    if (this.#channel) return this.#channel;
    const { stream, isBehind } = this.#storage;
    if (stream?.phase.name !== 'running') return undefined;
    const runtime = this.#runtime;
    const stored = this.#storage.suspended;
    this.#lastFrameAt = stored?.lastFrameAt ?? stream.phase.startedAt;
    const openSession = async () => {
      if (isBehind) throw new Error('the object was lost while audio came');
      if (!stored) return runtime.sessions.create(stream.settings);
      runtime.log('info', 'live_resumed', { streamId: stream.id, bytes: stored.session.length });
      return runtime.sessions.restore(stored.session);
    };
    const input = new LiveInput(stream.format.sampleRateHz, runtime.resampler, stored?.state.input);
    this.#channel = new LiveChannel(
      {
        openSession,
        format: stream.format,
        maxMs: runtime.times.maxMs,
        send: (text) => this.#send(text),
        end: (end) => this.#end(stream, end),
        onTrouble: (error) =>
          runtime.log('error', 'live_failed', { streamId: stream.id, error: String(error), stack: stackOf(error) }),
      },
      input,
      stored?.state,
    );
    return this.#channel;
  }

  #noteFrame(): void {
    this.#lastFrameAt = Date.now();
    if (!this.#isBehind) this.#storage.markBehind();
    this.#isBehind = true;
    this.#suspendIn(SUSPEND_AFTER_MS);
  }

  #suspendIn(delayMs: number): void {
    this.#suspendTimer ??= setTimeout(() => {
      this.#suspendTimer = null;
      // Not stored, not suspended: should the object be lost now, the stream ends as an error.
      this.#suspendWhenQuiet().catch((error) =>
        this.#runtime.log('error', 'live_suspend_failed', { error: String(error) }),
      );
    }, delayMs);
  }

  async #suspendWhenQuiet(): Promise<void> {
    const channel = this.#channel;
    if (!channel || this.#storage.stream?.phase.name !== 'running') return;
    const missingMs = this.#lastFrameAt + SUSPEND_AFTER_MS - Date.now();
    if (missingMs > 0) return this.#suspendIn(missingMs);
    const suspended = await channel.suspend();
    if (!suspended) return this.#suspendIn(SUSPEND_AFTER_MS);
    this.#storage.suspend({ ...suspended, lastFrameAt: this.#lastFrameAt });
    this.#isBehind = false;
  }

  #send(text: string): void {
    for (const socket of this.ctx.getWebSockets()) {
      try {
        socket.send(text);
      } catch {
        // The client is gone; the close event will say so.
      }
    }
  }

  /** Decided first, then written to the database, then told: a client that sees the connection close can read the end. */
  async #end(stream: StoredStream, { status, receivedSeconds, closeCode, closeReason }: ChannelEnd): Promise<void> {
    clearTimeout(this.#suspendTimer);
    const outcome: LiveOutcome = { status, receivedSeconds };
    this.#storage.end(stream, outcome, Date.now());
    await this.ctx.storage.setAlarm(Date.now() + RETRY_MS);
    try {
      await this.#settle(stream, outcome);
    } catch (error) {
      this.#runtime.log('error', 'live_end_failed', { streamId: stream.id, error: String(error) });
    }
    for (const socket of this.ctx.getWebSockets()) socket.close(closeCode, closeReason);
    if (this.#hasHeard || receivedSeconds > 0) setTimeout(() => this.#dropUnread(), LINGER_MS);
    else setTimeout(() => this.ctx.abort('the client never sent anything'), SILENT_LINGER_MS);
  }

  /** A client that reads nothing never answers the close; what waits for it would stay in memory. */
  #dropUnread(): void {
    if (this.ctx.getWebSockets().length > 0) this.ctx.abort('the client did not read its last messages');
  }

  /**
   * Writes the end of a stream once, however often it is called, and erases what is kept here, voiceprints included. Decided before the database
   * is asked: a connection that waits for the same slow database must not begin meanwhile.
   */
  async #settle(stream: StoredStream, outcome: LiveOutcome): Promise<void> {
    const decided = this.#storage.end(stream, outcome, Date.now());
    const ended = await this.#runtime.store.end(stream.id, decided.outcome, decided.endedAt);
    if (ended) this.#runtime.log('info', 'live_ended', { streamId: stream.id, ...decided.outcome });
    await this.#storage.forget();
  }
}

/** Codes that a client may have sent and that may be sent back; the others say that there was none (RFC 6455 §7.4). */
const isOwnCode = (code: number) => code === CLOSE.normal || (code >= 3000 && code <= 4999);

const stackOf = (error: unknown) => (error instanceof Error ? error.stack : undefined);
