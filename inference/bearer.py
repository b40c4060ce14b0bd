"""Tokens that other systems show: `Authorization: Bearer …`."""

import hmac

_SCHEME = "Bearer "


def status(authorization: str, token: str) -> int:
    """What the header shows, held against the token, as HTTP says it: 200, 401 (none is shown) or 403 (a
    wrong one). How long that takes tells nothing of the token."""
    if not authorization.startswith(_SCHEME):
        return 401
    shown = authorization.removeprefix(_SCHEME).strip()
    return 200 if hmac.compare_digest(shown.encode(), token.encode()) else 403
