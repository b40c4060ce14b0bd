"""Addresses of the console."""

from django.urls import path

from . import audit, entries, overview, review, sessions, sources, thresholds, versions

urlpatterns = [
    path("", overview.overview, name="console"),
    path("entries/", entries.entries, name="console_entries"),
    path("entries/searches/", entries.save_search, name="console_save_search"),
    path("entries/searches/<int:pk>/forget/", entries.forget_search, name="console_forget_search"),
    path("entries/<uuid:pk>/", entries.entry, name="console_entry"),
    path("review/", review.queue, name="console_review"),
    path("review/next/", review.begin, name="console_next"),
    path("review/bulk/", review.bulk, name="console_bulk"),
    path("review/bulk/decide/", review.decide_bulk, name="console_decide_bulk"),
    path("review/<uuid:pk>/", review.pairing, name="console_pairing"),
    path("review/<uuid:pk>/take/", review.take, name="console_take"),
    path("review/<uuid:pk>/keep/", review.keep, name="console_keep"),
    path("review/<uuid:pk>/release/", review.release, name="console_release"),
    path("review/<uuid:pk>/decide/", review.decide, name="console_decide"),
    path("versions/", versions.overview, name="console_versions"),
    path("versions/preview/", versions.preview_bump, name="console_preview_bump"),
    path("versions/bump/", versions.bump, name="console_bump"),
    path("flush/", versions.choose, name="console_flush"),
    path("flush/begin/", versions.begin, name="console_begin_flush"),
    path("flush/<uuid:batch>/resume/", versions.resume, name="console_resume_flush"),
    path("flush/<uuid:batch>/stop/", versions.stop, name="console_stop_flush"),
    path("sources/", sources.sources, name="console_sources"),
    path("sources/<int:pk>/", sources.source, name="console_source"),
    path("sources/<int:pk>/changed/", sources.changed, name="console_source_changed"),
    path("sessions/", sessions.sessions, name="console_sessions"),
    path("sessions/<uuid:pk>/", sessions.session, name="console_session"),
    path("ledger/", overview.ledger, name="console_ledger"),
    path("audit/", audit.audit, name="console_audit"),
    path("audit/<uuid:batch>/", audit.action, name="console_action"),
    path("audit/<uuid:batch>/undo/", review.undo, name="console_undo"),
    path("thresholds/", thresholds.page, name="console_thresholds"),
    path("thresholds/save/", thresholds.save, name="console_tune"),
    path("health/", overview.state, name="console_health"),
]
