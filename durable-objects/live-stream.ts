import { DurableObject } from 'cloudflare:workers';
import type { LiveEnv } from '../src/env.ts';
import { type ChannelEnd, type ChannelSnapshot, CLOSE, LiveChannel } from '../src/jobs/live-channel.ts';
import { FRAME_MS, LiveInput } from '../src/jobs/live-frames.ts';
import type { LiveOutcome, StreamSetup } from '../src/jobs/live-ports.ts';
import { tokenDigest } from '../src/jobs/live-streams.ts';
import { type LiveRpc, TOKEN_HEADERS } from '../src/platform/object-stubs.ts';
import { type LiveRuntime, liveRuntime } from '../src/services-live.ts';
import { type RunningPhase, type StoredStream, StreamStorage } from './live-storage.ts';

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const OVERLOADED = 503;
/** Close code of a connection that its client should resume (RFC 6455 registry: service restart). */
const CLOSE_TO_RESUME = 1012;

/** Time without frames before a connection is stored, so that the platform may evict the object from memory. */
const SUSPEND_AFTER_MS = 3000;
/** Pause before a failed step is retried. */
const RETRY_MS = 15_000;
/** How long a closed connection may wait for a client that does not read. */
const LINGER_MS = 10_000;
/**
 * The same for a client that never sent anything: workerd ends such a connection only with the object, ten seconds
 * after the object was last busy, although the client answers the close.
 */
const SILENT_LINGER_MS = 2000;

/**
 * One live stream: its token, its connection and the state of its diarization, which survive hibernation. The protocol
 * is in `LiveChannel`. The platform may evict an idle object from memory; the alarm then reads the state of the stream
 * from the storage.
 */
export class LiveStream extends DurableObject<LiveEnv> implements LiveRpc {
  readonly #storage: StreamStorage;
  readonly #runtime: LiveRuntime;
  #channel: LiveChannel | undefined;
  /** Tag of the channel's connection. */
  #tag = '';
  #lastFrameAt = 0;
  #hasUnsavedAudio = false;
  #hasReceived = false;
  #suspendTimer: number | null = null;

  constructor(state: DurableObjectState, env: LiveEnv) {
    super(state, env);
    this.#storage = new StreamStorage(state.storage);
    this.#runtime = liveRuntime(env);
  }

  /**
   * Stores a new stream; from now on its token can be used.
   * @returns false, without creating a stream, when this isolate is overloaded
   */
  async open({ streamId, expiresAt, ...setup }: StreamSetup): Promise<boolean> {
    if (this.#runtime.load.isOverloaded(Date.now())) return false;
    this.#storage.stream = { id: streamId, ...setup, phase: { name: 'waiting', expiresAt } };
    await this.ctx.storage.setAlarm(expiresAt);
    return true;
  }

  async discard(): Promise<void> {
    await this.#storage.forget();
  }

  /**
   * Runs the alarm's work now: after a few failures the platform gives up an alarm, and workerd then calls no later one
   * either.
   */
  async wake(): Promise<boolean> {
    if (!this.#storage.stream) return false;
    await this.alarm();
    return true;
  }

  /** The upgrade request, passed on by the Worker: answers 101, or the status of the refusal. */
  override async fetch(request: Request): Promise<Response> {
    const { stream } = this.#storage;
    const origin = request.headers.get('Origin');
    if (origin !== null && stream?.origins?.includes(origin) === false) return refused(FORBIDDEN);
    const resumeToken = request.headers.get(TOKEN_HEADERS.resume);
    if (resumeToken !== null) return this.#reconnect(await tokenDigest(resumeToken));
    return this.#connect(await tokenDigest(request.headers.get(TOKEN_HEADERS.connect) ?? ''));
  }

  async #connect(digest: Uint8Array): Promise<Response> {
    const now = Date.now();
    // Checked before the token is burnt, so that the client can retry with it.
    const isWaiting = this.#storage.stream?.phase.name === 'waiting';
    if (isWaiting && this.#runtime.load.isOverloaded(now)) return refused(OVERLOADED);
    const stream = this.#storage.burn(digest, now);
    if (!stream) return refused(UNAUTHORIZED);
    const { idleMs, connectedMs } = this.#runtime.times;
    await this.ctx.storage.setAlarm(now + Math.min(idleMs, connectedMs));
    if (!(await this.#runtime.store.start(stream.id, now))) return refused(UNAUTHORIZED);
    return this.#accept(this.#resume());
  }

  /** Resumes from the last snapshot; the client sends the later frames again. */
  async #reconnect(digest: Uint8Array): Promise<Response> {
    const now = Date.now();
    const { idleMs, connectedMs, resumeMs } = this.#runtime.times;
    // A stream that is ending cannot be resumed: its last events are already sent and cannot be repeated.
    const stream = this.#channel?.isEnding ? undefined : this.#storage.burnResume(digest, now - resumeMs);
    if (stream?.phase.name !== 'running') return refused(UNAUTHORIZED);
    this.#dropChannel();
    // The client may notice the lost connection before this object does.
    for (const socket of this.ctx.getWebSockets()) socket.close(CLOSE.policy, 'resumed by another connection');
    const resumedFrom = this.#storage.suspended?.lastFrameAt ?? stream.phase.startedAt;
    const channel = this.#resume(resumedFrom);
    this.#lastFrameAt = now;
    await this.ctx.storage.setAlarm(Math.min(now + idleMs, stream.phase.startedAt + connectedMs));
    return this.#accept(channel, true);
  }

  async #accept(channel: LiveChannel | undefined, isResumed = false): Promise<Response> {
    const { stream } = this.#storage;
    // The alarm may have ended the stream while the database was slow: nothing would close a connection accepted now.
    if (!channel || stream?.phase.name !== 'running') return refused(UNAUTHORIZED);
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server, [tagOf(stream.phase)]);
    const opening = channel.open();
    // Load the models before the client may send, or its first seconds would wait. Answer a resumed connection at
    // once: its token is already burnt, so that the client could not retry.
    if (isResumed) this.ctx.waitUntil(opening);
    else await opening;
    if (isResumed) channel.announce({ type: 'resumed', frame: channel.receivedFrames });
    if (stream.isResumable && !channel.isEnding) {
      const { token, digest } = await this.#resumeToken(stream.id, stream.phase.startedAt);
      if (this.#channel === channel && this.#storage.stream?.phase.name === 'running') {
        this.#storage.allowResume(digest);
        channel.announce({ type: 'resume', token, frame: channel.receivedFrames });
      }
    }
    return new Response(null, { status: 101, webSocket: client });
  }

  async #resumeToken(streamId: string, startedAt: number): Promise<{ token: string; digest: Uint8Array }> {
    const { connectedMs, resumeMs } = this.#runtime.times;
    const token = await this.#runtime.tokens.sign('resume', streamId, startedAt + connectedMs + resumeMs);
    return { token, digest: await tokenDigest(token) };
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    if (!this.#isCurrent(socket)) return;
    this.#hasReceived = true;
    const channel = this.#resume();
    if (!channel) return;
    const before = channel.receivedFrames;
    const isAtWork = channel.isAtWork;
    const processed = channel.receive(message);
    if (channel.receivedFrames > before) this.#noteFrame(channel);
    // One waiting event keeps the object in memory. If every event waited, they would pile up with a client whose
    // frames keep the queue from becoming empty.
    if (!isAtWork) await processed;
  }

  /** Answers a client's close, which the platform does not: the client would wait in vain for the reply. */
  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    if (this.#isCurrent(socket)) await this.#disconnected();
    try {
      socket.close(isOwnCode(code) ? code : CLOSE.normal);
    } catch {
      // The connection has already broken.
    }
  }

  override async webSocketError(socket: WebSocket): Promise<void> {
    if (this.#isCurrent(socket)) await this.#disconnected();
  }

  async #disconnected(): Promise<void> {
    const { stream } = this.#storage;
    if (stream?.phase.name === 'running' && stream.isResumable && !this.#channel?.isEnding)
      return this.#drop(stream, stream.phase, false);
    await this.#resume()?.disconnected();
  }

  /** The connection is lost: the stream waits for a client that resumes it. */
  async #drop(stream: StoredStream, phase: RunningPhase, isOurs: boolean): Promise<void> {
    const frames = this.#channel?.receivedFrames ?? this.#storage.keptFrames;
    const now = Date.now();
    this.#dropChannel();
    this.#storage.drop(stream, phase, { at: now, receivedSeconds: (frames * FRAME_MS) / 1000, isOurs });
    this.#runtime.log('info', 'live_dropped', { streamId: stream.id, frames, isOurs });
    await this.ctx.storage.setAlarm(now + this.#runtime.times.resumeMs);
  }

  /** Drops the channel from memory; the storage is not touched. */
  #dropChannel(): void {
    clearTimeout(this.#suspendTimer);
    this.#suspendTimer = null;
    this.#logLag(this.#channel);
    this.#channel?.abandon();
    this.#channel = undefined;
    this.#hasUnsavedAudio = false;
  }

  override async alarm(): Promise<void> {
    const { stream } = this.#storage;
    if (!stream) return;
    // Set the next alarm first, so that a failure below is retried.
    await this.ctx.storage.setAlarm(Date.now() + RETRY_MS);
    switch (stream.phase.name) {
      case 'waiting':
        return this.#settle(stream, { status: 'error', receivedSeconds: 0 });
      case 'ending':
        return this.#settle(stream, stream.phase.outcome);
      case 'running':
        return this.#checkRunning(stream, stream.phase);
    }
  }

  /**
   * Checks a running stream: closes it if it is idle or has reached its maximum duration, ends it if its connection
   * was lost with the process.
   */
  async #checkRunning(stream: StoredStream, phase: RunningPhase): Promise<void> {
    const { startedAt } = phase;
    if (this.#sockets(phase).length === 0) {
      if (stream.isResumable) return this.#waitForReturn(stream, phase);
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

  /** Ends a resumable stream without a connection once the time to resume it is over. */
  async #waitForReturn(stream: StoredStream, phase: RunningPhase): Promise<void> {
    const { dropped } = phase;
    // The object lost its memory with the connection: the time to resume begins now.
    if (!dropped) return this.#drop(stream, phase, this.#channel === undefined);
    const { at, receivedSeconds, isOurs } = dropped;
    const endsAt = at + this.#runtime.times.resumeMs;
    if (Date.now() < endsAt) return this.ctx.storage.setAlarm(endsAt);
    await this.#settle(stream, { status: isOurs ? 'error' : 'done', receivedSeconds });
  }

  #sockets(phase: RunningPhase): WebSocket[] {
    return this.ctx.getWebSockets(tagOf(phase));
  }

  /** Whether a connection is the latest one of its stream, or the stream has ended. */
  #isCurrent(socket: WebSocket): boolean {
    if (this.#channel) return this.ctx.getTags(socket).includes(this.#tag);
    const { stream } = this.#storage;
    return stream?.phase.name !== 'running' || this.ctx.getTags(socket).includes(tagOf(stream.phase));
  }

  /**
   * The channel of the running stream, restored from storage if memory was lost; undefined unless the stream runs.
   * @param resumedFrom when the previous connection last sent a frame, milliseconds since the Unix epoch
   */
  #resume(resumedFrom?: number): LiveChannel | undefined {
    if (this.#channel) return this.#channel;
    const { stream, hasUnsavedAudio } = this.#storage;
    if (stream?.phase.name !== 'running' || stream.phase.dropped) return undefined;
    if (hasUnsavedAudio && stream.isResumable) {
      for (const socket of this.ctx.getWebSockets()) socket.close(CLOSE_TO_RESUME, 'the object was lost');
      this.ctx.waitUntil(this.#drop(stream, stream.phase, true));
      return undefined;
    }
    const runtime = this.#runtime;
    const stored = this.#storage.suspended;
    this.#lastFrameAt = stored?.lastFrameAt ?? stream.phase.startedAt;
    const openSession = async () => {
      if (hasUnsavedAudio) throw new Error('the object was lost while audio came');
      if (!stored) return runtime.sessions.create(stream.settings);
      runtime.log('info', 'live_resumed', { streamId: stream.id, bytes: stored.session.length });
      return runtime.sessions.restore(stored.session);
    };
    const input = new LiveInput(stream.format.sampleRateHz, runtime.resampler, stored?.state.input);
    const channel: LiveChannel = new LiveChannel(
      {
        openSession,
        format: stream.format,
        maxMs: runtime.times.maxMs,
        send: (text) => this.#send(text),
        end: (end) => this.#end(stream, end),
        keep: stream.isResumable ? (snapshot) => this.#keep(channel, snapshot) : undefined,
        now: Date.now,
        load: runtime.load,
        onError: (error) =>
          runtime.log('error', 'live_failed', { streamId: stream.id, error: String(error), stack: stackOf(error) }),
      },
      input,
      stored?.state,
      resumedFrom,
    );
    this.#channel = channel;
    this.#tag = tagOf(stream.phase);
    return channel;
  }

  #noteFrame(channel: LiveChannel): void {
    if ((channel.receivedFrames * FRAME_MS) % this.#runtime.times.creditMs === 0) {
      this.#logLag(channel);
      this.ctx.waitUntil(this.#checkCredit(channel));
    }
    this.#lastFrameAt = Date.now();
    if (!this.#hasUnsavedAudio) this.#storage.markUnsavedAudio();
    this.#hasUnsavedAudio = true;
    this.#suspendIn(SUSPEND_AFTER_MS);
  }

  /** Logs the lag after each minute of audio and at the end of a connection; alerts read it. */
  #logLag(channel: LiveChannel | undefined): void {
    const lag = channel?.takeLag();
    const { stream } = this.#storage;
    if (lag && stream) this.#runtime.log('info', 'live_lag', { streamId: stream.id, ...lag });
  }

  /** Records the stream's usage after each minute of audio, and ends it when the account has no credit left. */
  async #checkCredit(channel: LiveChannel): Promise<void> {
    const { stream } = this.#storage;
    if (!stream) return;
    try {
      if (await this.#runtime.store.spend(stream.id, (channel.receivedFrames * FRAME_MS) / 1000)) return;
    } catch (error) {
      // An unavailable database does not end a stream; the next check is a minute later.
      this.#runtime.log('warn', 'live_credit_not_read', { streamId: stream.id, error: String(error) });
      return;
    }
    await channel.outOfCredit();
  }

  #suspendIn(delayMs: number): void {
    this.#suspendTimer ??= setTimeout(() => {
      this.#suspendTimer = null;
      // Without a snapshot the stream ends as an error if the object is lost.
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
    await this.#keep(channel, suspended);
  }

  /** Stores a snapshot, and sends the client of a resumable stream the token that resumes from it. */
  async #keep(channel: LiveChannel, snapshot: ChannelSnapshot): Promise<void> {
    const lastFrameAt = this.#lastFrameAt;
    const { stream } = this.#storage;
    if (stream?.phase.name !== 'running') return;
    const resume = stream.isResumable ? await this.#resumeToken(stream.id, stream.phase.startedAt) : undefined;
    // The stream may have ended or been resumed in the meantime.
    if (this.#channel !== channel || this.#storage.stream?.phase.name !== 'running') return;
    const frame = snapshot.state.receivedFrames;
    this.#hasUnsavedAudio = channel.receivedFrames > frame;
    this.#storage.suspend({ ...snapshot, lastFrameAt }, this.#hasUnsavedAudio, resume?.digest);
    // The platform holds the message back until the snapshot is stored durably.
    if (resume) channel.announce({ type: 'resume', token: resume.token, frame });
  }

  #send(text: string): void {
    for (const socket of this.ctx.getWebSockets(this.#tag)) {
      try {
        socket.send(text);
      } catch {
        // The client has disconnected; the close event follows.
      }
    }
  }

  /**
   * Decides the end, writes it to the database, then closes the connection: a client that sees the close can read the
   * end.
   */
  async #end(stream: StoredStream, { status, receivedSeconds, closeCode, closeReason }: ChannelEnd): Promise<void> {
    clearTimeout(this.#suspendTimer);
    this.#logLag(this.#channel);
    const outcome: LiveOutcome = { status, receivedSeconds };
    this.#storage.end(stream, outcome, Date.now());
    await this.ctx.storage.setAlarm(Date.now() + RETRY_MS);
    try {
      await this.#settle(stream, outcome);
    } catch (error) {
      this.#runtime.log('error', 'live_end_failed', { streamId: stream.id, error: String(error) });
    }
    for (const socket of this.ctx.getWebSockets()) socket.close(closeCode, closeReason);
    if (this.#hasReceived || receivedSeconds > 0) setTimeout(() => this.#dropUnread(), LINGER_MS);
    else setTimeout(() => this.ctx.abort('the client never sent anything'), SILENT_LINGER_MS);
  }

  /** A client that reads nothing never answers the close, and its unread messages would stay in memory. */
  #dropUnread(): void {
    if (this.ctx.getWebSockets().length > 0) this.ctx.abort('the client did not read its last messages');
  }

  /**
   * Writes the end of a stream to the database and erases the storage, voiceprints included. Idempotent. Decides the
   * end before the write, so that a connection that waits for the same slow database does not begin meanwhile.
   */
  async #settle(stream: StoredStream, outcome: LiveOutcome): Promise<void> {
    const decided = this.#storage.end(stream, outcome, Date.now());
    const ended = await this.#runtime.store.end(stream.id, decided.outcome, decided.endedAt);
    if (ended) this.#runtime.log('info', 'live_ended', { streamId: stream.id, ...decided.outcome });
    await this.#storage.forget();
  }
}

const refused = (status: number) => new Response(null, { status });

/** Tag of a stream's connection, which survives hibernation. */
const tagOf = ({ connection }: RunningPhase) => String(connection);

/** Codes that a client may send and that may be sent back; the others mean that none was sent (RFC 6455 §7.4). */
const isOwnCode = (code: number) => code === CLOSE.normal || (code >= 3000 && code <= 4999);

const stackOf = (error: unknown) => (error instanceof Error ? error.stack : undefined);
