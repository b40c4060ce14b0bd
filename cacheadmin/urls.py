"""Addresses for other systems."""

from django.urls import path

from . import views

urlpatterns = [
    path("api/sources/changed/", views.source_changed, name="source_changed"),
]
