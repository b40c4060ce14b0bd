"""Who may use which page of the console."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails


class Request(HttpRequest):
    """A request of an operator, as the middleware leaves it."""

    htmx: HtmxDetails
    user: User


View = Callable[..., HttpResponse]


def may(user: Any, permission: str) -> bool:
    """`permission` is view, review, tune or flush. The others are worth nothing without view, and none
    without being staff."""
    return bool(user.is_staff and user.has_perms(["cacheadmin.view", f"cacheadmin.{permission}"]))


def permitted(permission: str) -> Callable[[View], View]:
    """Calls the view for those who may; sends those who are not signed in to do so, the others get a 403."""

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapped(request: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return _to_login(request)
            if not may(request.user, permission):
                raise PermissionDenied
            response = view(request, **kwargs)
            patch_cache_control(response, private=True, no_cache=True)
            return response

        return wrapped

    return decorate


def _to_login(request: Request) -> HttpResponse:
    if request.htmx:
        return HttpResponseClientRedirect(reverse("account_login"))
    return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("console"))
