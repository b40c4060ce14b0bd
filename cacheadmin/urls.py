"""Addresses for other systems."""

from django.urls import path

from . import scrape, views

urlpatterns = [
    path("metrics", scrape.scrape, name="metrics"),
    path("api/sources/changed/", views.source_changed, name="source_changed"),
]
