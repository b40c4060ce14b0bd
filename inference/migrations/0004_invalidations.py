"""What people take back, and what followed from it: enough to undo it."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inference", "0003_prompts"),
    ]

    operations = [
        migrations.CreateModel(
            name="Invalidation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("correction", "Correction"),
                            ("rejection", "Rejection"),
                            ("restatement", "Restatement"),
                            ("edit", "Edit"),
                            ("regenerate", "Regenerate"),
                            ("thumbs_down", "Thumbs Down"),
                        ],
                        max_length=12,
                    ),
                ),
                ("confidence", models.FloatField(default=1.0, help_text="Of the detection, from 0 to 1.")),
                (
                    "reasons",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=60), blank=True, default=list, size=None
                    ),
                ),
                (
                    "epoch",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="To which it raised the session's; empty where it left that alone.",
                        null=True,
                    ),
                ),
                ("frozen", models.JSONField(blank=True, default=dict, help_text="State before, by entry.")),
                (
                    "read_only",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), blank=True, default=list, size=None
                    ),
                ),
                (
                    "blocked",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), blank=True, default=list, size=None
                    ),
                ),
                ("doubted", models.JSONField(blank=True, default=dict, help_text="State before, by entry.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("undone_at", models.DateTimeField(blank=True, null=True)),
                (
                    "generation",
                    models.ForeignKey(
                        help_text="The answer to the message that took it back, or the answer judged.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invalidations",
                        to="inference.generation",
                    ),
                ),
                (
                    "observation",
                    models.ForeignKey(
                        blank=True,
                        help_text="What it says of the pairing that had served the answer it took back.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="invalidations",
                        to="inference.observation",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invalidations",
                        to="inference.session",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("undone_at", None)),
                        fields=("generation", "cause"),
                        name="one_standing_invalidation_per_generation_and_cause",
                    )
                ],
            },
        ),
    ]
