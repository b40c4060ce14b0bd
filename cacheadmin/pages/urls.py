"""Addresses of the console."""

from django.urls import path

from . import audit, entries, overview, review

urlpatterns = [
    path("", overview.overview, name="console"),
    path("entries/", entries.entries, name="console_entries"),
    path("entries/<uuid:pk>/", entries.entry, name="console_entry"),
    path("review/", review.queue, name="console_review"),
    path("review/next/", review.begin, name="console_next"),
    path("review/<uuid:pk>/", review.pairing, name="console_pairing"),
    path("review/<uuid:pk>/take/", review.take, name="console_take"),
    path("review/<uuid:pk>/keep/", review.keep, name="console_keep"),
    path("review/<uuid:pk>/release/", review.release, name="console_release"),
    path("review/<uuid:pk>/decide/", review.decide, name="console_decide"),
    path("audit/", audit.audit, name="console_audit"),
    path("audit/<uuid:batch>/", audit.action, name="console_action"),
    path("audit/<uuid:batch>/undo/", review.undo, name="console_undo"),
    path("health/", overview.state, name="console_health"),
]
