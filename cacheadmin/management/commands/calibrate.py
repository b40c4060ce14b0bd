import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin import tuning
from cacheadmin.asking import actor, confirm
from cacheadmin.evaluating import cases_of, show_progress
from cacheadmin.shadow_text import report_lines
from inference.cache import policy, shadow
from inference.cache.policy import Thresholds
from inference.calibration import pairs, refitting
from inference.calibration.fitting import Fitted, Goal
from inference.calibration.pairs import Labelled
from inference.calibration.refitting import Proposal
from inference.evaluation.cases import read
from inference.models import Mode, Policy, Scope


class Command(BaseCommand):
    help = (
        "Fits the thresholds of the semantic layer: the lowest ones of which it can be said, with the stated "
        "confidence, that at most the target share of what they serve is wrong. From what was observed of "
        "earlier lookups, or from a case file. Every fit that says something is a new version of the policy. "
        "What serves less is put in force; what serves more only if you confirm it, else it is proposed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        data = parser.add_argument_group("what it is fitted to")
        data.add_argument(
            "--cases",
            type=Path,
            action="append",
            metavar="FILE",
            help="JSONL as for evaluate_cache; repeatable",
        )
        data.add_argument(
            "--observations", action="store_true", help="the cache's own; the default without --cases"
        )
        which = parser.add_argument_group("for what")
        which.add_argument(
            "--scope", metavar="HASH", help="beginning of a scope's hash; default: each and all"
        )
        which.add_argument("--class", dest="content_class", help="content class; default: each and all")
        how = parser.add_argument_group("how")
        how.add_argument("--target", type=float, help="share of wrong hits; default: CALIBRATION_TARGET")
        how.add_argument("--confidence", type=float, help="default: CALIBRATION_CONFIDENCE")
        how.add_argument("--shadow", action="store_true", help="try it on live lookups, without effect")
        how.add_argument("--yes", action="store_true", help="put in force what serves more, too; don't ask")
        how.add_argument("--dry-run", action="store_true", help="fit and show, change nothing")
        how.add_argument("--json", action="store_true", help="print one JSON object")
        other = parser.add_argument_group("instead of fitting")
        other.add_argument(
            "--accept",
            type=int,
            metavar="POLICY",
            help="put a proposed or tried policy in force (its number)",
        )
        other.add_argument(
            "--shadow-report", action="store_true", help="what the policies on trial would have done"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["shadow_report"]:
            return self._report(options["json"])
        if options["accept"] is not None:
            return self._accept(options["accept"])
        goal, scope = _goal(options), _scope(options["scope"])
        sources = []
        labelled: list[Labelled] = []
        if options["cases"]:
            cases = [case for path in options["cases"] for case in cases_of(path, read)]
            labelled += pairs.of_cases(cases, show_progress)
            sources.append("cases " + ", ".join(path.name for path in options["cases"]))
        if options["observations"] or not options["cases"]:
            labelled += _observed(scope, options["content_class"])
            sources.append("observations")
        found = refitting.proposals(
            labelled, " and ".join(sources), goal, scope=scope, content_class=options["content_class"]
        )
        applied = [self._apply(one, options) for one in found]
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(labelled, applied), indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(labelled, applied)))

    def _apply(self, proposal: Proposal, options: dict[str, Any]) -> tuning.Applied:
        if options["dry_run"]:
            return tuning.Applied(proposal, "kept" if proposal.certified else "too little is known")
        if options["shadow"]:
            return _on_trial(proposal)
        last = None if options["yes"] else tuning.last_fit(proposal.scope, proposal.content_class)
        try:
            return tuning.apply(proposal, actor(), lambda one: self._may_lower(one, options), last)
        except policy.Changed as problem:
            raise CommandError("Somebody changed these thresholds meanwhile. Try again.") from problem

    def _may_lower(self, proposal: Proposal, options: dict[str, Any]) -> bool:
        if options["yes"] or settings.CALIBRATION_MAY_LOWER:
            return True
        if options["json"] or not sys.stdin.isatty():
            return False  # it is proposed, and somebody is asked on the page
        try:
            confirm(f"{_name(proposal)}: {_change(proposal)} Serve more than before?")
        except CommandError:
            return False
        return True

    def _accept(self, pk: int) -> None:
        row = Policy.objects.filter(pk=pk).select_related("scope").first()
        if row is None:
            raise CommandError(f"There is no policy {pk}.")
        before = policy.standing(row.scope, row.content_class)
        if row not in (before.shadow, before.proposed):
            raise CommandError(f"Policy {pk} neither waits nor is tried: something else is in force since.")
        made = tuning.save(
            actor(),
            row.scope,
            row.content_class,
            Thresholds.of(row),
            Mode.LIVE,
            seen=before.newest,
            confirmed=True,
            reason=tuning.as_proposed(row),
            fit=row.fit,
        )
        self.stdout.write(f"In force: high {made.high:.3f}, low {made.low:.3f}, version {made.version}.")

    def _report(self, as_json: bool) -> None:
        reports = [shadow.report(row) for row in shadow.on_trial()]
        if as_json:
            self.stdout.write(json.dumps({"shadow": [one.to_json() for one in reports]}, indent=2))
        else:
            lines = [line for one in reports for line in report_lines(one)]
            self.stdout.write("\n".join(lines) or "No policy is on trial.")


def _goal(options: dict[str, Any]) -> Goal:
    asked = {name: options[name] for name in ("target", "confidence") if options[name] is not None}
    try:
        return replace(tuning.goal(), **asked)
    except ValueError as problem:
        raise CommandError(str(problem)) from problem


def _scope(beginning: str | None) -> Scope | None:
    if not beginning:
        return None
    found = list(Scope.objects.filter(hash__startswith=beginning)[:2])
    if len(found) != 1:
        raise CommandError(f"{'Several scopes begin' if found else 'No scope begins'} with {beginning!r}.")
    return found[0]


def _observed(scope: Scope | None, content_class: str | None) -> list[Labelled]:
    known = pairs.observed(scope.pk if scope else None, content_class or "")
    return pairs.convinced(known, len(known), show_progress)


def _on_trial(proposal: Proposal) -> tuning.Applied:
    row = tuning.save(
        actor(),
        proposal.scope,
        proposal.content_class,
        proposal.fitted,
        Mode.SHADOW,
        seen=proposal.before.newest,
        fit=proposal.to_json(),
    )
    return tuning.Applied(proposal, "on trial", (row,))


def _name(proposal: Proposal) -> str:
    whose = f"scope {proposal.scope.hash[:8]}" if proposal.scope else "all scopes"
    return f"{whose}, {proposal.content_class or 'all classes'}"


def _change(proposal: Proposal) -> str:
    before, after = proposal.before.live, proposal.fitted
    names = ("high", "low", "likely")
    return (
        ", ".join(f"{name} {getattr(before, name):.3f} → {getattr(after, name):.3f}" for name in names) + "."
    )


def _lines(labelled: list[Labelled], applied: list[tuning.Applied]) -> list[str]:
    right = sum(one.right for one in labelled)
    lines = [f"{len(labelled)} lookups whose truth is known: {right} right, {len(labelled) - right} wrong."]
    for one in applied:
        lines += ["", f"{_name(one.proposal)}: {one.did}. {_change(one.proposal)}"]
        fit = one.proposal.fit
        lines += [f"  {name:<8}{_of(fitted, fit.goal)}" for name, fitted in fit.kinds.items()]
        lines += [f"  version {row.version} ({row.mode}), policy {row.pk}" for row in one.rows]
    return lines


def _of(fitted: Fitted, goal: Goal) -> str:
    known = f"{fitted.n} pairs, {fitted.wrong} wrong"
    at = f"{fitted.wrong_hits} of {fitted.hits} hits wrong, at most {fitted.bound:.1%}"
    if fitted.certified is not None:
        return f"{fitted.certified:.3f} holds {goal.target:.1%} ({at}; {known})"
    if fitted.refuted:
        return f"{fitted.present:.3f} does not hold {goal.target:.1%} ({at}; {known})"
    return f"{fitted.present:.3f} stays: too few for a bound ({at}; {known})"


def _as_json(labelled: list[Labelled], applied: list[tuning.Applied]) -> dict[str, Any]:
    return {
        "lookups": len(labelled),
        "right": sum(one.right for one in labelled),
        "wrong": sum(not one.right for one in labelled),
        "fits": [
            {
                "scope": one.proposal.scope and one.proposal.scope.hash,
                "class": one.proposal.content_class,
                "did": one.did,
                "versions": [row.version for row in one.rows],
                "before": _values(one.proposal.before.live),
                "after": _values(one.proposal.fitted),
                **one.proposal.to_json(),
            }
            for one in applied
        ],
    }


def _values(limits: Thresholds) -> dict[str, float]:
    return {"high": limits.high, "low": limits.low, "likely": limits.likely}
