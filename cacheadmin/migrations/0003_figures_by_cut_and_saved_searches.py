"""Hours are counted for all, each scope, each class, and both; what waits and is held is sampled; searches
are kept; and what else the console's newer pages search by."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

INDEXES = {
    "console_observation_time": "inference_observation (created_at)",
    "console_invalidation_time": "inference_invalidation (created_at)",
    "console_session_active": "inference_session (last_active DESC, id DESC)",
}


def _cut(model: str, index: str, old: str) -> list[migrations.operations.base.Operation]:
    cuts = [("each", "Each"), ("scope", "Scope"), ("class", "Class"), ("all", "All")]
    return [
        migrations.RemoveIndex(model, old),
        migrations.AddField(
            model, "cut", models.CharField(choices=cuts, max_length=5, default="all"), preserve_default=False
        ),
        migrations.AddIndex(
            model, models.Index(fields=["cut", "scope", "content_class", "hour"], name=index)
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("cacheadmin", "0002_console_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # They are counted anew, from what they were counted from.
        migrations.RunSQL("TRUNCATE cacheadmin_lookuphour, cacheadmin_answerhour", migrations.RunSQL.noop),
        *_cut("lookuphour", "lookup_hour_cut", "lookup_hour"),
        *_cut("answerhour", "answer_hour_cut", "answer_hour"),
        migrations.AddIndex(
            "auditrecord",
            models.Index(
                fields=["batch"],
                condition=models.Q(("status", "done"), _negated=True),
                name="audit_unfinished",
            ),
        ),
        migrations.CreateModel(
            name="LoadSample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(unique=True)),
                (
                    "waiting",
                    models.PositiveIntegerField(help_text="Answers being written, or waiting for an engine."),
                ),
                (
                    "suspects",
                    models.PositiveIntegerField(help_text="Pairings in review, counted to a thousand."),
                ),
                (
                    "kv_bytes",
                    models.BigIntegerField(help_text="Keys and values held by all engines.", null=True),
                ),
                ("kv_limit", models.BigIntegerField(help_text="What they may hold at most.", null=True)),
            ],
        ),
        migrations.CreateModel(
            name="SavedSearch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("query", models.TextField(help_text="As it stands in the address.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_searches",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "name"), name="one_saved_search_per_name")
                ],
            },
        ),
        *(
            migrations.RunSQL(f"CREATE INDEX {name} ON {what}", f"DROP INDEX {name}")
            for name, what in INDEXES.items()
        ),
    ]
