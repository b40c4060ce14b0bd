"""Looking for an answer. Each layer is one function from a question to a pairing or nothing."""

from uuid import UUID

from inference.models import Scope, Wording


def exact(key: str, scope: Scope, session: UUID) -> Wording | None:
    """The proved pairing with this key that `session` may be served; its own before a shared one."""
    return (
        Wording.objects.servable(scope, session)
        .filter(exact_key=key)
        .select_related("entry")
        .order_by("visibility", "-created_at")  # "session" sorts before "shared"
        .first()
    )
