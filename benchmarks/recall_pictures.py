"""The curves of recall_compression, as pictures."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

COLOURS = {
    "recall": "#1f5fbf",
    "clusterkv": "#7aa6e0",
    "quest": "#c2571a",
    "snapkv": "#3a8f4d",
    "streaming_llm": "#8a8a8a",
}
NAMES = {
    "recall": "recall (ours)",
    "clusterkv": "without sharpening",
    "quest": "Quest",
    "snapkv": "SnapKV",
    "streaming_llm": "StreamingLLM",
}
KINDS = ("recall", "mass", "perplexity")
TITLES = {
    "recall": "true best keys that are seen",
    "mass": "attention that is kept",
    "perplexity": "perplexity / full attention",
}


def draw(measured: dict[str, Any], folder: Path) -> None:
    """What there is of `recall_choice.png`, `recall_decode.png` and `recall_layers.png`, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    if choice := measured.get("choice"):
        _choice(choice, folder / "recall_choice.png")
    if decode := measured.get("decode"):
        _decode(decode, folder / "recall_decode.png")
    if layers := measured.get("layers"):
        _layers(layers, folder / "recall_layers.png")


def _save(file: Path) -> None:
    plt.tight_layout()
    plt.savefig(file, dpi=110, metadata={"Software": None})
    plt.close()


def _choice(choice: dict[str, Any], file: Path) -> None:
    figure, rows = plt.subplots(
        len(KINDS), len(choice), figsize=(3.6 * len(choice), 8), squeeze=False, sharey="row"
    )
    for column, (tokens, one) in enumerate(choice.items()):
        for row, kind in enumerate(KINDS):
            axes = rows[row][column]
            _curves(axes, one, kind)
            axes.set_title(f"{tokens} tokens" if row == 0 else "")
            axes.set_ylabel(TITLES[kind] if column == 0 else "")
            axes.set_xlabel("tokens seen of the context" if row == len(KINDS) - 1 else "")
    handles, labels = rows[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=3, frameon=False, fontsize=8)
    plt.tight_layout(rect=(0, 0.05, 1, 1))
    plt.savefig(file, dpi=110, metadata={"Software": None})
    plt.close()


def _curves(axes: Axes, one: dict[str, Any], kind: str) -> None:
    full = one["full"]["perplexity"] if kind == "perplexity" else 1
    for name, by_budget in one["methods"].items():
        budgets = [int(budget) for budget in by_budget]
        values = [of[kind] / full for of in by_budget.values()]
        axes.plot(budgets, values, marker="o", markersize=3, color=COLOURS[name], label=NAMES[name])
    axes.set_xscale("log", base=2)
    axes.set_xticks(budgets, [str(budget) for budget in budgets])
    axes.grid(alpha=0.25)


def _decode(decode: dict[str, Any], file: Path) -> None:
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    contexts = list(decode)
    places = range(len(contexts))
    for shift, kind, colour, name in (
        (-0.2, "full_ms", "#8a8a8a", "full"),
        (0.2, "recall_ms", "#1f5fbf", "ours"),
    ):
        middle = [decode[tokens][kind]["p50"] for tokens in contexts]
        high = [decode[tokens][kind]["p90"] - decode[tokens][kind]["p50"] for tokens in contexts]
        at = [place + shift for place in places]
        left.bar(at, middle, 0.36, color=colour, label=name, yerr=[[0] * len(high), high], capsize=3)
    left.set_xticks(list(places), contexts)
    left.set_xlabel("tokens of context")
    left.set_ylabel("ms a step (P50, bar to P90)")
    left.legend(frameon=False)
    device = [decode[tokens]["device_bytes"] / 2**20 for tokens in contexts]
    archive = [decode[tokens]["archive_bytes"] / 2**20 for tokens in contexts]
    full = [decode[tokens]["full_bytes"] / 2**20 for tokens in contexts]
    right.bar([place - 0.2 for place in places], full, 0.36, color="#8a8a8a", label="full")
    right.bar([place + 0.2 for place in places], device, 0.36, color="#1f5fbf", label="at hand")
    right.bar([p + 0.2 for p in places], archive, 0.36, bottom=device, color="#a9c6ee", label="archive")
    right.set_xticks(list(places), contexts)
    right.set_xlabel("tokens of context")
    right.set_ylabel("MiB of keys and values")
    right.legend(frameon=False)
    _save(file)


def _layers(layers: dict[str, Any], file: Path) -> None:
    _, axes = plt.subplots(figsize=(9, 3))
    rows = layers["layers"]
    axes.bar([row["layer"] for row in rows], [row["divergence"] for row in rows], color="#1f5fbf")
    axes.set_xlabel(f"layer recalled alone, {layers['budget']} of {layers['context']} tokens seen")
    axes.set_ylabel("divergence from full (nats)")
    _save(file)
