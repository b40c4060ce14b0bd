"""Addresses of the site."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("console/", include("cacheadmin.pages.urls")),
    path("", include("cacheadmin.urls")),
    path("", include("chat.urls")),
]
