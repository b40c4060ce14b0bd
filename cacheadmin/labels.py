"""What the console calls states, outcomes, layers and the like, in the reader's language."""

from typing import Any

from django.utils.translation import gettext_lazy as _

Labels = dict[str, Any]

STATES: Labels = {
    "suspect": _("suspect"),
    "active": _("active"),
    "frozen": _("frozen"),
    "rejected": _("rejected"),
}
CLASSES: Labels = {
    "fact": _("general knowledge"),
    "advice": _("advice"),
    "code": _("code"),
    "business": _("business rule"),
    "live": _("live data"),
    "chitchat": _("small talk"),
    "creative": _("creative"),
    "personal": _("personal"),
}
LANGUAGES: Labels = {"en": _("English"), "zh": _("Chinese")}
VISIBILITIES: Labels = {"session": _("its conversation"), "shared": _("everyone")}
OUTCOMES: Labels = {
    "hit": _("hit"),
    "gray": _("gray hit"),
    "near": _("near"),
    "miss": _("miss"),
    "bypass": _("bypassed"),
}
LAYERS: Labels = {"exact": _("exact"), "fuzzy": _("fuzzy"), "semantic": _("semantic"), "none": _("none")}
SERVED_BY: Labels = {
    "exact": _("exact layer"),
    "fuzzy": _("fuzzy layer"),
    "semantic": _("semantic layer"),
    "gray": _("semantic layer, unproved"),
    "coalesced": _("together with another"),
    "model": _("the model"),
}
# By what stored answers were taken back; the last three are operators' or other systems' doing.
CAUSES: Labels = {
    "correction": _("corrected by the person"),
    "rejection": _("refused by the person"),
    "restatement": _("asked anew in other words"),
    "edit": _("question edited"),
    "regenerate": _("answered anew"),
    "thumbs_down": _("thumb down"),
    "source": _("source changed"),
    "version": _("version bumped"),
    "flush": _("flushed"),
}
ORIGINS: Labels = {
    "birth": _("the answer was written for it"),
    "near": _("compared with a fresh answer"),
    "hit": _("served for its likeness"),
}
VERDICTS: Labels = {
    "agree": _("agrees"),
    "disagree": _("disagrees"),
    "unclear": _("unclear"),
    "unknown": _("open"),
    "conflict": _("conflict"),
}
WITNESSES: Labels = {
    "user": _("the reader"),
    "correction": _("a correction"),
    "near": _("a fresh answer"),
    "gray": _("a fresh answer in the background"),
    "regenerate": _("another answer was asked for"),
    "edit": _("the question was edited at once"),
    "repeat": _("asked again in other words"),
    "continued": _("the conversation went on"),
    "operator": _("an operator"),
    "undo": _("a correction, taken back"),
}
ACTIONS: Labels = {
    "approve": _("approved"),
    "reject": _("rejected"),
    "edit": _("edited and approved"),
    "skip": _("skipped"),
    "confuse": _("told apart"),
    "undo": _("undone"),
    "flush": _("flushed"),
    "bump": _("version bumped"),
    "invalidate": _("source changed"),
    "tune": _("thresholds changed"),
}
STATUSES: Labels = {
    "running": _("running"),
    "interrupted": _("interrupted"),
    "done": _("done"),
}
# How an answer came to its end.
ANSWERS: Labels = {
    "pending": _("waiting"),
    "running": _("being written"),
    "complete": _("complete"),
    "stopped": _("stopped"),
    "interrupted": _("interrupted"),
    "failed": _("failed"),
}
# What a worker says of its keys and values; see inference.kv.snapshot.
TOTALS: Labels = {
    "held_bytes": _("Held in all"),
    "stored_bytes": _("Kept for later"),
    "stored_shared_bytes": _("of it for several sessions"),
    "stored_unique_bytes": _("of it for one session"),
    "stored_unpinned_bytes": _("of it for no session"),
    "live_bytes": _("Of running requests"),
    "idle_bytes": _("Room in reserve"),
    "live_sequences": _("Running requests"),
    "sessions": _("Sessions"),
    "sessions_if_unshared_bytes": _("What they would hold without sharing"),
    "bytes_per_token": _("Bytes for each token"),
    "requests_tight": _("Requests that had to make room"),
    "requests_refused": _("Requests refused for want of room"),
    "limit_bytes": _("At most"),
    "budget_bytes": _("Kept for later, at most"),
    "live_tokens": _("Tokens of running requests"),
    "stored_tokens": _("Tokens kept for later"),
    "stored_nodes": _("Pieces they are kept in"),
    "hit_ratio": _("Of all prompts' tokens, found"),
}
# What an action's values are called: which entries were meant, what was there before and after.
VALUES: Labels = {
    "scope": _("scope"),
    "version": _("version"),
    "content_class": _("class"),
    "source": _("source"),
    "session": _("conversation"),
    "pattern": _("asked like"),
    "before": _("from before"),
    "entries": _("entries"),
    "by_state": _("by state"),
    "by_class": _("by class"),
    "by_scope": _("by scope"),
    "knowledge": _("knowledge"),
    "system_prompt": _("system prompt"),
    "answer": _("answer"),
    "said": _("an operator had said"),
    "first": _("one name"),
    "second": _("the other name"),
}
SUBJECTS: Labels = {
    "wording": _("pairing"),
    "entry": _("entry"),
    "confusable pair": _("names never to be confused"),
    "scope": _("scope"),
    "policy": _("thresholds"),
}
MODES: Labels = {"live": _("live"), "shadow": _("on trial"), "proposed": _("proposed")}
# Thresholds that are fitted.
THRESHOLDS: Labels = {
    "high": _("Upper threshold"),
    "low": _("Lower threshold"),
    "likely": _("In other words"),
}
# Groups of lookups in a shadow policy's report.
TRIALS: Labels = {
    "live": _("served as it is"),
    "shadow": _("served by the one on trial"),
    "added": _("served only by the one on trial"),
    "lost": _("not served any more"),
    "changed": _("served another answer"),
}
# Codes of a fingerprint's reasons; see inference.understanding.comparison.
DIFFERENCES: Labels = {
    "number": _("numbers"),
    "opposite": _("opposites"),
    "version": _("versions"),
    "date": _("dates"),
    "direction": _("direction"),
    "entity": _("names"),
    "roles": _("who does what to whom"),
    "unit": _("units"),
    "wording": _("other words"),
    "condition": _("condition"),
    "intent": _("what is asked for"),
    "form": _("form of the answer"),
    "negation": _("what is denied"),
    "polarity": _("yes or no"),
    "confusable": _("names never to be confused"),
    "corrected": _("what was taken back"),
    "bare": _("too little said to compare"),
}
REFUSALS: Labels = {
    "unknown_action": _("There is no such action."),
    "empty_answer": _("An answer can't be empty."),
    "same_answer": _("The answer is the same as before: approve it instead."),
    "names_do_not_differ": _(
        "These names don't tell the question from the entry's others: one must name the first and not the "
        "second, the other the second and not the first."
    ),
    "nothing_chosen": _("Nothing is chosen."),
    "not_undoable": _("This can't be undone."),
    "undone_before": _("This was undone already."),
}
# Codes of inference.versions.WrongVersion.
WRONG_VERSIONS: Labels = {
    "same": _("This is what is asked with already."),
    "used": _(
        "This version was in use before: what was stored under it would be served again. Choose another "
        "name, or say that you are going back."
    ),
    "name": _("A version has 1 to 100 letters, digits and . _ - + : / @, a letter or digit first."),
    "empty": _("The system prompt is empty."),
    "nul": _("The system prompt contains a NUL character."),
}
SPANS: Labels = {
    "1h": _("the last hour"),
    "24h": _("the last day"),
    "7d": _("the last 7 days"),
    "30d": _("the last 30 days"),
}
EVERY: dict[str, Labels] = {
    "state": STATES,
    "class": CLASSES,
    "language": LANGUAGES,
    "visibility": VISIBILITIES,
    "outcome": OUTCOMES,
    "layer": LAYERS,
    "served_by": SERVED_BY,
    "origin": ORIGINS,
    "cause": CAUSES,
    "verdict": VERDICTS,
    "witness": WITNESSES,
    "action": ACTIONS,
    "subject": SUBJECTS,
    "status": STATUSES,
    "answer": ANSWERS,
    "total": TOTALS,
    "value": VALUES,
    "difference": DIFFERENCES,
    "mode": MODES,
    "threshold": THRESHOLDS,
    "trial": TRIALS,
}


def label(kind: str, value: str) -> str:
    """What `value` is called; what has no name here is called by its own."""
    return str(EVERY[kind].get(value) or value)
