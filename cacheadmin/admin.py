"""The record of what was done, to look at."""

from django.contrib import admin

from inference.admin import ReadOnly

from .models import AuditRecord


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnly):
    list_display = ("created_at", "action", "actor", "entries", "status", "reason")
    list_filter = ("action", "status")
