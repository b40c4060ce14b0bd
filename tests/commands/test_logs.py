"""manage.py replay and assess_traffic on logs small enough to know what must come out."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from inference.cache import policy
from inference.cache.policy import BUILT_IN, Thresholds
from inference.evaluation import conversations, worth
from inference.evaluation.worth import Prices
from inference.models import Decision, Entry, Mode, Scope, Session

pytestmark = pytest.mark.django_db(transaction=True)

LAKE = ("How do I get to the lake?", "Take the tram, line 4, to the last stop.")
SEA = ("Which sea is the saltiest of all?", "The Dead Sea, with about 34% of salt.")
JOKE = ("Write me a poem about rain.", "Rain on the roof, rain on the lane.")


def talk(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"turns": [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)], **more}


def log(path: Path, *talks: Any) -> str:
    file = path / "log.jsonl"
    file.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in talks))
    return str(file)


def run(command: str, *arguments: str) -> str:
    shown = StringIO()
    call_command(command, *arguments, stdout=shown, stderr=StringIO())
    return shown.getvalue()


def found(command: str, *arguments: str) -> dict[str, Any]:
    return dict(json.loads(run(command, "--json", *arguments)))


@pytest.fixture
def traffic(tmp_path: Path) -> str:
    """Two questions that come again, one in other letters and with the same answer, one with another answer;
    one that is asked once, and one whose answer is not stored."""
    return log(
        tmp_path,
        talk(*LAKE, id="a"),
        talk(*SEA),
        talk("how do i get to the lake", LAKE[1], *JOKE),
        [{"role": "system", "text": "Be brief."}, {"role": "user", "text": SEA[0]}],
        talk(SEA[0], "The Baltic: 0.7% of salt only."),
    )


class TestReplay:
    def test_what_comes_again_is_answered_from_the_cache(self, traffic: str) -> None:
        report = found("replay", traffic)
        assert (report["conversations"], report["questions"], report["bypassed"]) == (5, 6, 1)
        assert report["hits"] == 3 and report["by_layer"] == {"exact": 3}
        assert (report["right"], report["wrong"], report["unknown"]) == (1, 1, 1)
        share, low, high = report["wrong_share"]
        assert low < share == 0.5 < high

    def test_time_and_tokens_with_and_without(self, tmp_path: Path) -> None:
        one = talk(*LAKE)
        one["turns"][1]["seconds"] = 20.0
        report = found("replay", log(tmp_path, one, one, one))
        assert report["without_cache"]["answers"] == 3 and report["with_cache"]["answers"] == 1
        assert report["without_cache"]["seconds"] == 60.0
        assert report["saved"]["seconds"] == pytest.approx(40.0, abs=1.0)
        per_answer = report["without_cache"]["completion_tokens"] / 3
        assert per_answer > 5 and report["saved"]["tokens"] > 2 * per_answer

    def test_nothing_is_left_behind(self, traffic: str) -> None:
        run("replay", traffic)
        for model in (Scope, Session, Entry, Decision):
            assert not model._default_manager.exists(), model

    def test_another_policy_decides(self, tmp_path: Path) -> None:
        first, other = (
            "When does the museum open on Sundays?",
            "On Sundays, at what time does the museum open?",
        )
        answer = "At ten in the morning."
        path = log(tmp_path, talk(first, answer), talk(other, answer))
        lax = policy.write(None, "", Thresholds(0.5, 0.5, 0.5, 0.0), Mode.SHADOW, seen=0)
        strict = policy.write(None, "", Thresholds(1.0, 1.0, 0.5, 1.0), Mode.PROPOSED, seen=1)
        assert found("replay", path, "--policy", str(lax.pk))["hits"] == 1
        assert found("replay", path, "--policy", str(strict.pk))["hits"] == 0
        tried = found("replay", path, "--policy", str(strict.pk), "--shadow", str(lax.pk))["shadow"]
        assert tried["added"] == {**tried["added"], "n": 1, "right": 1, "wrong": 0}
        assert policy.standing(None, "").live == BUILT_IN
        with pytest.raises(CommandError, match="no policy 0"):
            run("replay", path, "--policy", "0")

    def test_a_correction_is_heeded(self, tmp_path: Path) -> None:
        """What somebody has corrected is not served to them again."""
        corrected = talk(*SEA, "No, that's wrong, scrap that.", "Sorry.", SEA[0], "Lake Assal.")
        report = found("replay", log(tmp_path, talk(*SEA), corrected))
        assert report["by_layer"].get("exact", 0) == 1

    def test_the_engine_itself_can_answer(self, tmp_path: Path, settings: Any) -> None:
        """Its answers take the place of the log's, and its time is taken."""
        settings.MAX_TOKENS = 6
        report = found("replay", log(tmp_path, talk(*LAKE), talk(LAKE[0])), "--engine")
        assert report["hits"] == report["right"] + report["unknown"] == 1
        assert 0 < report["with_cache"]["seconds"] < report["without_cache"]["seconds"]
        assert report["without_cache"]["completion_tokens"] < 20

    def test_for_people(self, traffic: str) -> None:
        text = run("replay", traffic)
        for told in ("answered by the cache", "wrong, of the known", "saved", "en/fact", "p99"):
            assert told in text, told

    def test_questions_without_answers_are_looked_up_all_the_same(self, tmp_path: Path) -> None:
        report = found("replay", log(tmp_path, talk(LAKE[0]), talk(LAKE[0]), talk(SEA[0])))
        assert report["hits"] == 1 and report["unknown"] == 1 and report["wrong_share"] is None


class TestAssess:
    def test_share_by_class_and_language(self, tmp_path: Path) -> None:
        again = [talk(*LAKE) for _at in range(4)]
        report = found(
            "assess_traffic", log(tmp_path, *again, talk(*JOKE), talk("长城有多长？", "两万公里。"))
        )
        assert (report["questions"], report["equivalent"], report["cacheable"]) == (6, 3, 5)
        assert report["by_language"]["en"]["equivalent"] == 3 and report["by_language"]["zh"]["share"][0] == 0
        assert report["by_class"]["creative"]["cacheable"] == 0
        assert report["advice"]["verdict"] == "perhaps" and "longer log" in report["advice"]["text"]
        assert report["money"] is None

    def test_another_answer_is_no_equivalent(self, traffic: str) -> None:
        report = found("assess_traffic", traffic)
        assert report["served"] == 3 and report["equivalent"] == 2

    def test_by_proportion(self, tmp_path: Path) -> None:
        path = log(tmp_path, *[talk(*LAKE) for _at in range(4)])
        report = found("assess_traffic", path, "--price", "1", "--cache-cost", "5", "--questions", "4000")
        money = report["money"]
        assert money["saved"] == pytest.approx(money["spent_without"] * 3 / 4, rel=1e-3)
        assert money["gain"] == pytest.approx(money["saved"] - 5) and money["worth_it"]
        assert money["break_even_questions"] == pytest.approx(5 / money["saved"] * 4000, abs=1)
        assert "gains" in run("assess_traffic", path, "--price", "1")
        assert "loses" in run("assess_traffic", path, "--price", "1", "--cache-cost", "9")
        free = found("assess_traffic", path, "--price", "1", "--prompt-price", "0")["money"]
        assert free["spent_without"] < found("assess_traffic", path, "--price", "1")["money"]["spent_without"]

    @pytest.mark.parametrize(
        ("share", "verdict", "sure"),
        [
            ([0.1, 0.05, 0.2], "no", True),
            ([0.1, 0.05, 0.4], "no", False),
            ([0.3, 0.3, 0.6], "perhaps", True),
            ([0.6, 0.5, 0.7], "perhaps", False),
            ([0.61, 0.605, 0.7], "yes", True),
            (None, "unknown", True),
        ],
    )
    def test_advice(self, share: list[float] | None, verdict: str, sure: bool) -> None:
        given = worth.advice(share)
        assert given["verdict"] == verdict and ("longer log" not in given["text"]) == sure

    def test_nothing_asked_costs_nothing(self) -> None:
        assert worth.assess([], worth.estimated_tokens, Prices(1, 1))["money"]["saved"] == 0


class TestBadFiles:
    @pytest.mark.parametrize("command", ["replay", "assess_traffic"])
    @pytest.mark.parametrize(
        "line",
        [
            "not JSON",
            "[]",
            "{}",
            '"text"',
            '{"turns": []}',
            '{"turns": {"role": "user"}}',
            '{"turns": [{"role": "tool", "content": "x"}]}',
            '{"turns": [{"role": "user"}]}',
            '{"turns": [{"role": "user", "content": " "}]}',
            '{"turns": [{"role": "user", "content": 3}]}',
            '{"turns": [{"role": "assistant", "content": "x"}]}',
            '{"turns": [{"role": "user", "content": "x", "seconds": -1}]}',
            '{"turns": ["x"]}',
        ],
    )
    def test_say_which_line(self, tmp_path: Path, command: str, line: str) -> None:
        path = log(tmp_path, talk(*LAKE), line)
        with pytest.raises(CommandError, match="line 2"):
            run(command, path)
        assert not Scope.objects.exists()

    @pytest.mark.parametrize("command", ["replay", "assess_traffic"])
    def test_missing_empty_or_not_text(self, tmp_path: Path, command: str) -> None:
        with pytest.raises(CommandError, match="nowhere"):
            run(command, str(tmp_path / "nowhere.jsonl"))
        with pytest.raises(CommandError, match="no conversations"):
            run(command, log(tmp_path, ""))
        (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(CommandError, match="decode"):
            run(command, str(tmp_path / "x.jsonl"))

    @pytest.mark.parametrize("amount", ["-1", "nan", "inf", "x"])
    def test_prices_that_are_none(self, traffic: str, amount: str) -> None:
        with pytest.raises(CommandError, match="amount"):
            run("assess_traffic", traffic, f"--price={amount}")


def test_every_shape_of_a_line_reads_the_same() -> None:
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": "a?"},
        {"role": "assistant", "content": "b", "seconds": 2},
    ]
    named = [{"role": "system", "text": "x"}, {"role": "user", "text": "a?"}, {**turns[1], "text": "no"}]
    shapes = (turns, {"turns": turns}, {"messages": turns}, {"turns": named})
    talks = [conversations.parse(shape) for shape in shapes]
    for one in talks:
        (question,) = one.questions()
        assert (question.text, question.answer, question.seconds) == ("a?", "b", 2)
