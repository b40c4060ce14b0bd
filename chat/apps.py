from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from . import accounts  # noqa: F401  (connects the sign-up and login signals)
