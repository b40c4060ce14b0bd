"""Addresses of the chat."""

from django.urls import path

from . import health, views

urlpatterns = [
    path("", views.new, name="chat"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/rename/", views.rename, name="conversation_rename"),
    path("c/<uuid:conversation_id>/delete/", views.delete, name="conversation_delete"),
    path("c/<uuid:conversation_id>/export.<str:kind>", views.export, name="conversation_export"),
    path("c/<uuid:conversation_id>/corrections/", views.corrections, name="conversation_corrections"),
    path("corrections/<int:correction_id>/undo/", views.undo_correction, name="correction_undo"),
    path("conversations/", views.conversations, name="conversation_list"),
    path("messages/<uuid:message_id>/", views.message, name="message"),
    path("messages/<uuid:message_id>/branch/", views.branch, name="message_branch"),
    path("messages/<uuid:message_id>/feedback/", views.feedback, name="message_feedback"),
    path("healthz", health.healthz, name="healthz"),
]
