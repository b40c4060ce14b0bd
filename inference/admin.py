"""The cache's tables, to look at. They are changed through the console and the lifecycle, not here."""

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from .models import Decision, Entry, Generation, Observation, Scope, Session, Wording


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


@admin.register(Decision)
class DecisionAdmin(ReadOnly):
    list_display = ("layer", "outcome", "reason", "milliseconds", "created_at")
    list_filter = ("layer", "outcome")
    raw_id_fields = ("generation", "wording", "entry")


@admin.register(Observation)
class ObservationAdmin(ReadOnly):
    list_display = ("source", "verdict", "generation", "created_at")
    raw_id_fields = ("generation", "wording")
