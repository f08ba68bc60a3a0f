"""Turns of a simulated window, with pauses, overlaps, interruptions and back-channels. Times in frames of 10 ms."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .bank import Span

WINDOW_FRAMES = 1000
"""Default length of a window."""
LOCAL_SPEAKERS = 3
MAX_TURNS = 45
PARALLEL_SHARE = 0.12
"""Share of lively windows in which people talk independently of each other."""
POLITE_SHARE = {True: 0.15, False: 0.4}
"""Share of lively and of other windows without overlap: dialogues, readings, interviews."""
ABUTTED_SHARE, ABUTTED_FRAMES = 0.2, 4
"""Share of turns that begin at the end of the previous one, and its tolerance. Without them, a change without a pause
would be a cue for overlap."""


@dataclass
class Turn:
    """A span of speech of one local speaker."""

    speaker: int
    start: int
    span: Span

    @property
    def frames(self) -> int:
        return self.span.end - self.span.start

    @property
    def end(self) -> int:
        return self.start + self.frames


SpanOf = Callable[[int, int], Span]
"""(local speaker, wanted frames) -> a span of the recordings; it may be much shorter."""


@dataclass
class Style:
    """Style of a conversation; drawn once per window."""

    short_share: float
    long_share: float
    overlap_share: float
    gap_frames: float
    long_pause_share: float
    backchannels_per_second: float
    same_speaker_share: float
    start_frame: int
    max_turns: int


def draw_style(rng: np.random.Generator, lively: bool, sparse: bool, frames: int) -> Style:
    """`lively`: a meeting or call, many short turns and back-channels; `sparse`: a few turns in an otherwise empty
    window."""
    style = Style(
        short_share=rng.uniform(0.2, 0.6) if lively else rng.uniform(0, 0.2),
        long_share=float(rng.choice([0.05, 0.2, 0.5], p=[0.5, 0.35, 0.15])),
        overlap_share=float(
            rng.choice([0.05, 0.25, 0.5, 0.75], p=[0.1, 0.3, 0.4, 0.2] if lively else [0.25, 0.35, 0.25, 0.15])
        ),
        gap_frames=float(rng.choice([15, 35, 70])),
        long_pause_share=rng.uniform(0, 0.18) if lively else 0.05,
        backchannels_per_second=rng.uniform(0, 0.45) if lively else rng.uniform(0, 0.1),
        same_speaker_share=rng.uniform(0.1, 0.5),
        start_frame=-int(rng.uniform(0, 500)),
        max_turns=MAX_TURNS,
    )
    if rng.random() < POLITE_SHARE[lively]:
        style.overlap_share = style.backchannels_per_second = 0.0
    if sparse:
        style.start_frame = int(rng.uniform(-150, frames - 150))
        style.gap_frames, style.max_turns = 250.0, int(rng.integers(1, 5 * frames // WINDOW_FRAMES))
        style.overlap_share *= 0.5
    return style


def draw_length(rng: np.random.Generator, style: Style) -> int:
    """Turn length in frames: back-channel-like 0.2-1 s, short 0.8-2.5 s, middle 2.5-5 s, or long 5-12 s."""
    u = rng.random()
    if u < style.short_share:
        return int(rng.uniform(20, 100))
    u = (u - style.short_share) / (1 - style.short_share)
    if u < style.long_share:
        return int(rng.uniform(500, 1200))
    return int(rng.uniform(80, 250)) if u < 0.5 + style.long_share / 2 else int(rng.uniform(250, 500))


def draw_start(rng: np.random.Generator, style: Style, frames: int, before: Turn, changed: bool) -> int:
    """Start of the turn after `before`: earlier than its end for an interruption.

    Most overlaps at changes are under half a second, as in Heldner & Edlund, "Pauses, gaps and overlaps in
    conversations", 2010; a few are longer.
    """
    end = before.end
    if changed and rng.random() < style.overlap_share:
        wished = 5 + rng.exponential(30) if rng.random() < 0.7 else rng.uniform(5, 200)
        return end - int(min(wished, 0.85 * frames, 0.8 * before.frames))
    if changed and rng.random() < ABUTTED_SHARE:
        return end + int(rng.integers(ABUTTED_FRAMES))
    if rng.random() < style.long_pause_share:
        return end + int(rng.uniform(80, 350))
    return end + int(min(250, rng.exponential(style.gap_frames))) + (0 if changed else 15)


def _parallel_turns(rng: np.random.Generator, speakers: int, style: Style, span_of: SpanOf, frames: int) -> list[Turn]:
    """Independent turns and pauses of all speakers: two conversations in one room, or talk before a meeting."""
    turns = []
    for speaker in range(speakers):
        at, pause = -int(rng.uniform(0, 500)), rng.uniform(60, 400)
        while at < frames:
            turns.append(Turn(speaker, at, span_of(speaker, draw_length(rng, style))))
            at = turns[-1].end + int(rng.exponential(pause)) + 15
    return turns


def draw_turns(
    rng: np.random.Generator,
    speakers: int,
    lively: bool,
    sparse: bool,
    span_of: SpanOf,
    window_frames: int = WINDOW_FRAMES,
) -> list[Turn]:
    """Turns of `speakers` local speakers over one window; the first may start before it and the last end after it."""
    style = draw_style(rng, lively, sparse, window_frames)
    if lively and speakers > 1 and not sparse and rng.random() < PARALLEL_SHARE:
        return _parallel_turns(rng, speakers, style, span_of, window_frames)
    share = rng.dirichlet(np.full(speakers, 1.5)) * 0.7 + 0.3 / speakers
    turns: list[Turn] = []
    floor: Turn | None = None
    while len(turns) < style.max_turns:
        if floor is None or speakers == 1:
            speaker = int(rng.choice(speakers, p=share)) if speakers > 1 else 0
        elif rng.random() < style.same_speaker_share:
            speaker = floor.speaker
        else:
            others = share.copy()
            others[floor.speaker] = 0
            speaker = int(rng.choice(speakers, p=others / others.sum()))
        span = span_of(speaker, draw_length(rng, style))
        frames = span.end - span.start
        start = style.start_frame if floor is None else draw_start(rng, style, frames, floor, speaker != floor.speaker)
        if start >= window_frames:
            break
        turn = Turn(speaker, start, span)
        turns.append(turn)
        if floor is None or turn.end > floor.end:
            floor = turn
        if speakers > 1 and frames > 150:
            for _ in range(rng.poisson(style.backchannels_per_second * frames / 100)):
                listener = int(rng.integers(speakers - 1))
                listener += listener >= speaker
                short = span_of(listener, int(rng.uniform(20, 90)))
                latest = max(21, frames - (short.end - short.start))
                turns.append(Turn(listener, start + int(rng.uniform(20, latest)), short))
    return turns


def bridge_pauses(activity: np.ndarray) -> None:
    """Labels like references of meetings, in place: activity uint8 [speakers, frames] at 100 Hz.

    Speech is widened by 20 ms, but not into another speaker's; a speaker's pauses under 0.5 s become speech, or under
    0.2 s if another speaker talks in them.
    """
    for speaker, own in enumerate(activity):
        before, free = own.copy(), 1 - np.delete(activity, speaker, 0).max(0, initial=0)
        own[:-2] |= before[2:] & free[:-2]
        own[2:] |= before[:-2] & free[2:]
        edges = np.diff(own.astype(np.int8))
        ends, starts = np.where(edges == -1)[0] + 1, np.where(edges == 1)[0] + 1
        for end in ends:
            at = int(np.searchsorted(starts, end))
            if at == len(starts):
                break
            start = starts[at]
            if start - end >= 50:
                continue
            others = np.delete(activity, speaker, 0)[:, end:start]
            if start - end < 20 or not others.any():
                own[end:start] = 1


def targets(activity: np.ndarray, identities: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Activity uint8 [speakers,T] at 100 Hz -> labels uint8 [3,T/2], mask uint8 [T/2], identities int32 [3] (-1: none
    or unknown).

    The three most active speakers at 50 Hz; frames with a fourth or with three at once are left out of the loss.
    """
    coarse = (activity[:, 0::2] | activity[:, 1::2]) > 0
    changed = (
        (coarse.sum(0) > 1) & (activity[:, 0::2].sum(0) < 2) & (activity[:, 1::2].sum(0) < 2)
    )  # consecutive speakers do not overlap
    coarse[:, changed] = activity[:, 0::2][:, changed] > 0
    total = coarse.sum(1)
    labels, known = np.zeros((LOCAL_SPEAKERS, coarse.shape[1]), np.uint8), np.full(LOCAL_SPEAKERS, -1, np.int32)
    mask = np.ones(coarse.shape[1], np.uint8)
    for place, number in enumerate(np.argsort(-total, kind="stable")):
        if place < LOCAL_SPEAKERS and total[number]:
            labels[place], known[place] = coarse[number], identities[number]
        elif place >= LOCAL_SPEAKERS:
            mask[coarse[number]] = 0
    mask[labels.sum(0) > 2] = 0
    return labels, mask, known
