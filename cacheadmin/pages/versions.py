"""Versions and flush: what is asked with, and switching to another; deleting entries on purpose."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from cacheadmin import flushing, inventory, labels, tasks
from cacheadmin.access import Request, permitted
from cacheadmin.bumping import bump as bump_version
from cacheadmin.labels import CLASSES, STATES
from cacheadmin.search import AGES
from inference import versions
from inference.cache import flush
from inference.cache.flush import Selection
from inference.models import Scope
from inference.versions import Active, Moved, WrongVersion

from .page import draw


class BumpForm(forms.Form):
    knowledge = forms.CharField(label=gettext_lazy("New version"), max_length=100)
    system_prompt = forms.CharField(
        label=gettext_lazy("System prompt"),
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 5, "dir": "auto"}),
    )
    back = forms.BooleanField(
        label=gettext_lazy("Return to a version that was in use before, and its entries"), required=False
    )
    reason = forms.CharField(label=gettext_lazy("Reason (may stay empty)"), required=False, max_length=2_000)
    seen_knowledge = forms.CharField(widget=forms.HiddenInput, required=False, strip=False)
    seen_prompt = forms.CharField(widget=forms.HiddenInput, required=False, strip=False)

    def __init__(self, data: Any = None, **kwargs: Any) -> None:
        super().__init__(data, auto_id="b-%s", label_suffix="", **kwargs)

    @property
    def wanted(self) -> tuple[str, str]:
        # Browsers send line ends as CR LF.
        return self.cleaned_data["knowledge"], self.cleaned_data["system_prompt"].replace("\r\n", "\n")

    @property
    def seen(self) -> Active:
        sent = self.cleaned_data
        return Active(sent["seen_knowledge"], sent["seen_prompt"].replace("\r\n", "\n"))


def _blank(now: Active) -> BumpForm:
    return BumpForm(initial={"system_prompt": now.system_prompt})


@require_GET
@permitted("view")
def overview(request: Request) -> HttpResponse:
    return _versions(request, _blank(versions.active()))


def _versions(request: Request, form: BumpForm, status: int = 200, problem: str = "") -> HttpResponse:
    return draw(
        request,
        "versions",
        status,
        apps=inventory.apps(),
        bumps=inventory.bumps(),
        most_bumps=inventory.SHOWN_VERSIONS,
        form=form,
        problem=problem,
    )


@require_POST
@permitted("flush")
def preview_bump(request: Request) -> HttpResponse:
    form = BumpForm(request.POST)
    if not form.is_valid():
        return _versions(request, form, 400)
    try:
        planned = versions.plan(*form.wanted, back=form.cleaned_data["back"])
    except WrongVersion as wrong:
        return _versions(request, form, 400, str(labels.WRONG_VERSIONS[wrong.code]))
    return _preview(request, form, planned)


def _preview(
    request: Request, form: BumpForm, planned: versions.Bump, status: int = 200, problem: str = ""
) -> HttpResponse:
    return draw(request, "bump", status, planned=planned, form=form, problem=problem)


@require_POST
@permitted("flush")
def bump(request: Request) -> HttpResponse:
    form = BumpForm(request.POST)
    if not form.is_valid():
        return _versions(request, form, 400)
    sent = form.cleaned_data
    try:
        made = bump_version(*form.wanted, request.user, sent["reason"], back=sent["back"], seen=form.seen)
    except WrongVersion as wrong:
        return _versions(request, form, 409, str(labels.WRONG_VERSIONS[wrong.code]))
    except Moved:
        problem = _("Somebody else has switched meanwhile, so nothing was done. Here it is as it is now.")
        return _versions(request, form, 409, problem)
    said = _("Switched to %(version)s: %(count)d entries are out of reach.")
    messages.success(request, said % {"version": made.after.knowledge, "count": made.entries})
    return redirect("console_versions")


# --- flush ------------------------------------------------------------------------------------------


class FlushForm(forms.Form):
    """Which entries; all that is given must hold."""

    scope = forms.ModelChoiceField(
        Scope.objects.order_by("-id"),
        label=gettext_lazy("Scope"),
        required=False,
        empty_label=gettext_lazy("Any"),
    )
    version = forms.CharField(label=gettext_lazy("Knowledge version"), required=False, max_length=100)
    content_class = forms.ChoiceField(label=gettext_lazy("Class"), required=False)
    state = forms.ChoiceField(label=gettext_lazy("State"), required=False)
    source = forms.CharField(label=gettext_lazy("Source"), required=False, max_length=200)
    age = forms.ChoiceField(label=gettext_lazy("Older than"), required=False)
    session = forms.UUIDField(label=gettext_lazy("Born in the conversation (its id)"), required=False)
    pattern = forms.CharField(
        label=gettext_lazy("Asked like"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("* stands for anything, ? for one character"),
    )
    everything = forms.BooleanField(label=gettext_lazy("Every entry there is"), required=False)

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="f-%s", label_suffix="")
        ages = {"1h": _("an hour"), "1d": _("a day"), "7d": _("7 days"), "30d": _("30 days")}
        for name, choices in (("content_class", CLASSES), ("state", STATES), ("age", ages)):
            choice = self.fields[name]
            assert isinstance(choice, forms.ChoiceField)
            choice.choices = [("", _("Any")), *choices.items()]

    @property
    def which(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name != "everything"]

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or {}
        narrowed = any(value for name, value in sent.items() if name != "everything")
        if not self.errors and narrowed == bool(sent.get("everything")):
            raise forms.ValidationError(
                _("Say which entries, or that every entry is meant, and then nothing else.")
            )
        return sent

    @property
    def selection(self) -> Selection:
        sent = self.cleaned_data
        names = ("version", "content_class", "state", "source", "session", "pattern")
        return Selection(
            **{name: sent[name] or None for name in names},
            scope=sent["scope"].hash if sent["scope"] else None,
            before=timezone.now() - AGES[sent["age"]] if sent["age"] else None,
        )


@require_GET
@permitted("view")
def choose(request: Request) -> HttpResponse:
    """Which entries, and, once that is said, how many they are."""
    return _chosen(request, FlushForm(request.GET or None))


def _chosen(request: Request, form: FlushForm, status: int = 200, problem: str = "") -> HttpResponse:
    asked = form.is_bound and form.is_valid()
    return draw(
        request,
        "flush",
        status,
        form=form,
        found=flush.count(form.selection) if asked else None,
        running=flushing.open_ones(),
        problem=problem,
    )


@require_POST
@permitted("flush")
def begin(request: Request) -> HttpResponse:
    """What was counted before is deleted now; if it has come to be more since, it is shown anew."""
    form = FlushForm(request.POST)
    if not form.is_valid():
        return _chosen(request, form, 400)
    found = flush.count(form.selection)
    seen = request.POST.get("seen", "")
    if not seen.isdecimal() or found.entries > int(seen):
        problem = _("There are more by now than you were shown, so nothing was done. Here they are.")
        return _chosen(request, form, 409, problem)
    record = flushing.begin(
        form.selection, found, request.user, request.POST.get("reason", "").strip()[:2_000]
    )
    return _send_off(request, record.batch)


@require_POST
@permitted("flush")
def resume(request: Request, batch: UUID) -> HttpResponse:
    if not flushing.take(batch):
        messages.warning(request, _("There is nothing to go on with: it runs, or it is done."))
        return redirect("console_action", batch)
    return _send_off(request, batch)


def _send_off(request: Request, batch: UUID) -> HttpResponse:
    try:
        tasks.flush.apply_async((str(batch),), retry=False, ignore_result=True)
    except (KombuError, RedisError, OSError):
        flushing.end(batch)
        messages.error(request, _("No worker can be reached now. Nothing is lost: go on later."))
    return redirect("console_action", batch)


@require_POST
@permitted("flush")
def stop(request: Request, batch: UUID) -> HttpResponse:
    if not flushing.end(batch):
        try:
            flushing.unfinished(batch)
        except flushing.NothingToResume as error:
            raise Http404 from error
    return redirect("console_action", batch)
