"""Who did what, who has what open in review, what each hour came to."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("inference", "0005_versions_and_sources"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Console",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("view", "Can look at the cache in the console"),
                    ("review", "Can approve, edit and reject what is suspect"),
                    ("tune", "Can change thresholds"),
                    ("flush", "Can flush entries and bump versions"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ReviewClaim",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                (
                    "operator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="review_claims",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "wording",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="claim",
                        to="inference.wording",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AnswerHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                (
                    "content_class",
                    models.CharField(blank=True, help_text="Empty without an entry.", max_length=20),
                ),
                ("n", models.PositiveIntegerField()),
                ("served_by", models.CharField(max_length=10)),
                ("bucket", models.PositiveSmallIntegerField()),
                ("tokens_saved", models.BigIntegerField()),
                ("seconds_saved", models.FloatField()),
                ("prompt_tokens", models.BigIntegerField(help_text="Of those that the model read.")),
                (
                    "cached_tokens",
                    models.BigIntegerField(help_text="Those among them that were not read anew."),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="inference.scope",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["hour"], name="answer_hour")],
            },
        ),
        migrations.CreateModel(
            name="AuditRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("batch", models.UUIDField(db_index=True, default=uuid.uuid4, editable=False)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("flush", "Flush"),
                            ("bump", "Bump"),
                            ("invalidate", "Invalidate"),
                            ("approve", "Approve"),
                            ("reject", "Reject"),
                            ("edit", "Edit"),
                            ("skip", "Skip"),
                            ("confuse", "Confuse"),
                            ("undo", "Undo"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "actor",
                    models.CharField(
                        help_text="Name of the user as it was then, or of a command.", max_length=200
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("subject", models.CharField(blank=True, max_length=30)),
                ("subject_id", models.CharField(blank=True, max_length=64)),
                (
                    "selection",
                    models.JSONField(
                        blank=True, default=dict, help_text="Which entries were meant, and how."
                    ),
                ),
                ("before", models.JSONField(blank=True, default=dict)),
                ("after", models.JSONField(blank=True, default=dict)),
                ("entries", models.PositiveIntegerField(default=0, help_text="How many it came to so far.")),
                (
                    "status",
                    models.CharField(
                        choices=[("running", "Running"), ("interrupted", "Interrupted"), ("done", "Done")],
                        default="done",
                        max_length=12,
                    ),
                ),
                (
                    "undoes",
                    models.UUIDField(
                        blank=True, help_text="The batch that this action took back.", null=True
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="cache_actions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["subject", "subject_id"], name="audit_subject"),
                    models.Index(fields=["user", "-id"], name="audit_user"),
                    models.Index(fields=["-created_at"], name="audit_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("undoes__isnull", False)),
                        fields=("undoes", "subject", "subject_id"),
                        name="an_action_is_undone_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LookupHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                (
                    "content_class",
                    models.CharField(blank=True, help_text="Empty without an entry.", max_length=20),
                ),
                ("n", models.PositiveIntegerField()),
                ("layer", models.CharField(max_length=20)),
                ("outcome", models.CharField(max_length=10)),
                ("milliseconds", models.FloatField(help_text="Of all of them together.")),
                (
                    "scope",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="inference.scope",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["hour"], name="lookup_hour")],
            },
        ),
    ]
