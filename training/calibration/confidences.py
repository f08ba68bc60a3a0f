"""Fits the confidences of frames on the service's outputs, and plots the reliability of those of frames and of turns.

    node --import tsx bench/confidences.ts conversations/check conversations/sitting MEETINGS --output counts.json
    python -m calibration.confidences counts.json --fit conversations/check --plot reliability.svg

The file has, for every folder, the numbers of wrong and right frames and turns by per cent of confidence, and the map
of the confidences (`confidence` in `src/diarization/parameters.ts`). A fit on log-odds of that map gives one map for
both together (Platt 1999).
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

PERCENT = np.arange(101)
LEAST = 0.005
"""Half a per cent: stored confidences are no nearer to 0 or 1."""


def log_odds(percent: np.ndarray) -> np.ndarray:
    value = np.clip(percent / 100, LEAST, 1 - LEAST)
    return np.log(value / (1 - value))


def fit(counts: np.ndarray) -> tuple[float, float]:
    """Slope and offset on the log-odds of the confidences with the highest likelihood of the counts [101, 2]: wrong,
    right."""
    x = log_odds(PERCENT)

    def loss(p: np.ndarray) -> float:
        logits = p[0] * x + p[1]
        return float(
            (counts[:, 0] * np.logaddexp(0, logits) + counts[:, 1] * np.logaddexp(0, -logits)).sum() / counts.sum()
        )

    slope, offset = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options=dict(xatol=1e-5, fatol=1e-9)).x
    return float(slope), float(offset)


def bins_of(counts: np.ndarray, percent: np.ndarray) -> list[tuple[float, float, float]]:
    """Mean confidence, share right and share of all, of every non-empty tenth. percent: confidence of each row"""
    tenth, all_of = np.minimum(percent // 10, 9).astype(int), counts.sum(1)
    rows = [tenth == b for b in range(10) if all_of[tenth == b].sum()]
    return [
        (
            (percent[row] * all_of[row]).sum() / all_of[row].sum(),
            100 * counts[row, 1].sum() / all_of[row].sum(),
            all_of[row].sum() / all_of.sum(),
        )
        for row in rows
    ]


def line(counts: np.ndarray, percent: np.ndarray) -> str:
    error = sum(share * abs(confidence - right) for confidence, right, share in bins_of(counts, percent))
    mean = (counts.sum(1) * percent).sum() / counts.sum()
    return f"right {100 * counts[:, 1].sum() / counts.sum():.1f} % confidence {mean:.1f} calibration error {error:.1f}"


def draw(sets: dict[str, dict[str, np.ndarray]], path: str) -> None:
    """Reliability diagrams: share right by confidence, frames on the left and turns on the right."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rollcall"
    from matplotlib import pyplot

    figure, both = pyplot.subplots(1, 2, figsize=(8.4, 4.2), sharey=True)
    for axes, of in zip(both, ("frames", "turns")):
        axes.plot([0, 100], [0, 100], color="0.7", linewidth=1)
        for folder, counts in sets.items():
            confidence, right, share = map(np.array, zip(*bins_of(counts[of], PERCENT)))
            (drawn,) = axes.plot(
                confidence, right, linewidth=1, label=f"{Path(folder).name}: {counts[of].sum():,} {of}"
            )
            axes.scatter(confidence, right, s=4 + 150 * share, color=drawn.get_color(), alpha=0.6, linewidths=0)
        axes.set(xlabel=f"confidence of {of}", xlim=(0, 100), ylim=(0, 102), title=of)
        axes.legend(fontsize=7, loc="upper left", frameon=False)
    both[0].set_ylabel("right, %")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Title": "Reliability of the confidences"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", type=Path)
    parser.add_argument("--fit", metavar="FOLDER", help="folder to fit the map of frames on")
    parser.add_argument("--plot", metavar="SVG")
    args = parser.parse_args()
    stored = json.loads(args.counts.read_text())
    sets = {
        one["folder"]: {of: np.array(one[of], float).astype(int) for of in ("frames", "turns")}
        for one in stored["sets"]
    }
    if args.fit and args.fit not in sets:
        parser.error(f"{args.fit} is none of {', '.join(sets)}")
    slope, offset = fit(sets[args.fit]["frames"]) if args.fit else (1.0, 0.0)
    again = 100 / (1 + np.exp(-(slope * log_odds(PERCENT) + offset)))
    for folder, counts in sets.items():
        print(f"{folder}: frames {line(counts['frames'], PERCENT)}; turns {line(counts['turns'], PERCENT)}")
        if args.fit:
            print(f"    fitted again: frames {line(counts['frames'], again)}")
    if args.fit:
        before = stored["confidence"]
        print(
            f"slope {slope * before['slope']:.3f} offset {slope * before['offset'] + offset:.3f} "
            f"(before {before['slope']} and {before['offset']})"
        )
    if args.plot:
        draw(sets, args.plot)


if __name__ == "__main__":
    main()
