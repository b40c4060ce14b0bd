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
    "operator": _("an operator"),
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
}
STATUSES: Labels = {
    "running": _("running"),
    "interrupted": _("interrupted"),
    "done": _("done"),
}
SUBJECTS: Labels = {
    "wording": _("pairing"),
    "entry": _("entry"),
    "confusable pair": _("names never to be confused"),
    "scope": _("scope"),
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
}
REFUSALS: Labels = {
    "unknown_action": _("There is no such action."),
    "empty_answer": _("An answer can't be empty."),
    "same_answer": _("The answer is the same as before: approve it instead."),
    "names_do_not_differ": _(
        "These names don't tell the question from the entry's others: one must name the first and not the "
        "second, the other the second and not the first."
    ),
    "not_undoable": _("This can't be undone."),
    "undone_before": _("This was undone already."),
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
    "verdict": VERDICTS,
    "witness": WITNESSES,
    "action": ACTIONS,
    "subject": SUBJECTS,
    "status": STATUSES,
    "difference": DIFFERENCES,
}


def label(kind: str, value: str) -> str:
    """What `value` is called; what has no name here is called by its own."""
    return str(EVERY[kind].get(value) or value)
