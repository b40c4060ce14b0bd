"""Conversations, to look at."""

from django.contrib import admin

from inference.admin import ReadOnly

from .models import Conversation, Message


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    list_display = ("id", "title", "user", "created_at", "updated_at")
    raw_id_fields = ("user", "leaf")


@admin.register(Message)
class MessageAdmin(ReadOnly):
    list_display = ("id", "role", "text", "conversation", "created_at")
    list_filter = ("role",)
    raw_id_fields = ("conversation", "parent", "generation")
