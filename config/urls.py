"""Addresses of the site."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    # The operators' console will live here; until then they see the cache's tables in the admin.
    path("console/", RedirectView.as_view(pattern_name="admin:index"), name="console"),
    path("", include("chat.urls")),
]
