"""The cache's tables, to look at. They are changed through the console and the lifecycle, not here."""

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from .history import both_views
from .models import (
    ConfusablePair,
    Decision,
    Entry,
    Generation,
    Invalidation,
    Observation,
    Policy,
    Scope,
    Session,
    Summary,
    Wording,
)


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Scope)
class ScopeAdmin(ReadOnly):
    list_display = ("hash", "app", "model_version", "knowledge_version", "created_at")


@admin.register(Session)
class SessionAdmin(ReadOnly):
    list_display = ("id", "topic", "epoch", "last_active", "ended_at")
    exclude = ("blocked",)


@admin.register(Entry)
class EntryAdmin(ReadOnly):
    list_display = ("id", "content_class", "visibility", "state", "hits", "expires_at", "created_at")
    list_filter = ("state", "visibility", "content_class")
    search_fields: ClassVar = ["answer"]
    raw_id_fields = ("scope", "session")


@admin.register(Wording)
class WordingAdmin(ReadOnly):
    list_display = ("question", "visibility", "state", "hits", "agreed", "disagreed", "created_at")
    list_filter = ("state", "visibility")
    search_fields: ClassVar = ["question"]
    raw_id_fields = ("entry", "scope", "session")


@admin.register(Generation)
class GenerationAdmin(ReadOnly):
    list_display = ("id", "status", "served_by", "canonical_question", "first_token_ms", "total_ms")
    list_filter = ("status", "served_by")
    raw_id_fields = ("session", "scope", "entry", "wording", "leader")
    readonly_fields = ("both_ways",)

    @admin.display(description="Conversation both ways")
    def both_ways(self, generation: Generation) -> str:
        address = reverse("admin:inference_generation_both_ways", args=[generation.pk])
        return format_html('<a href="{}">{}</a>', address, "As the person sees it, and as the model does")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.show_both_ways)
        mine = path("<uuid:pk>/both-ways/", view, name="inference_generation_both_ways")
        return [mine, *super().get_urls()]

    def show_both_ways(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """The conversation up to this answer, side by side. Who may view generations may view this."""
        generation = Generation.objects.filter(pk=pk).first()
        if not self.has_view_permission(request, generation):
            raise PermissionDenied
        if generation is None:
            raise Http404
        context = {
            **self.admin_site.each_context(request),
            "title": "Conversation both ways",
            "opts": self.opts,
            "generation": generation,
            "rows": both_views(generation),
            "summaries": Summary.objects.filter(session=generation.session_id).order_by("created_at"),
        }
        return render(request, "admin/inference/generation/both_ways.html", context)


@admin.register(Summary)
class SummaryAdmin(ReadOnly):
    list_display = ("text", "source", "used", "session", "created_at")
    list_filter = ("source", "used")
    raw_id_fields = ("session",)


@admin.register(Decision)
class DecisionAdmin(ReadOnly):
    list_display = ("layer", "outcome", "reason", "milliseconds", "created_at")
    list_filter = ("layer", "outcome")
    raw_id_fields = ("generation", "wording", "entry")


@admin.register(Observation)
class ObservationAdmin(ReadOnly):
    list_display = ("source", "verdict", "generation", "created_at")
    raw_id_fields = ("generation", "wording")


@admin.register(Invalidation)
class InvalidationAdmin(ReadOnly):
    list_display = ("cause", "confidence", "entries", "session", "created_at", "undone_at")
    list_filter = ("cause",)
    raw_id_fields = ("session", "generation", "observation")


@admin.register(Policy)
class PolicyAdmin(ReadOnly):
    list_display = (
        "version",
        "mode",
        "scope",
        "content_class",
        "high",
        "low",
        "near",
        "consent",
        "created_at",
    )
    list_filter = ("mode", "content_class")
    raw_id_fields = ("scope",)


@admin.register(ConfusablePair)
class ConfusablePairAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The one table that is edited here: names never to be taken for each other."""

    list_display = ("first", "second", "scope", "created_at")
    search_fields: ClassVar = ["first", "second"]
    raw_id_fields = ("scope",)
