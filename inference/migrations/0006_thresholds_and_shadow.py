"""What a policy was fitted to, what a lookup was compared by, and what a shadow policy would have done."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inference", "0005_versions_and_sources"),
    ]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="measured",
            field=models.JSONField(
                blank=True, help_text="What the thresholds were compared with: see `measured`.", null=True
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="shadow",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The policy that was tried without effect.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="shadow_decisions",
                to="inference.policy",
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="shadowed",
            field=models.JSONField(
                blank=True, help_text="What that one would have done: outcome, wording, entry.", null=True
            ),
        ),
        migrations.AddField(
            model_name="policy",
            name="author",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="A user or a command; empty: a fit by itself.",
                max_length=200,
            ),
        ),
        migrations.AddField(
            model_name="policy",
            name="fit",
            field=models.JSONField(
                blank=True, help_text="The fit: target, confidence, data, bounds and curves.", null=True
            ),
        ),
        migrations.AddField(
            model_name="policy",
            name="likely",
            field=models.FloatField(
                db_default=0.97,
                default=0.97,
                help_text="In other words: at or above a gray hit by all evidence.",
            ),
        ),
        migrations.AlterField(
            model_name="policy",
            name="mode",
            field=models.CharField(
                choices=[("live", "Live"), ("shadow", "Shadow"), ("proposed", "Proposed")],
                default="shadow",
                max_length=10,
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("shadow__isnull", False)),
                fields=["shadow", "-id"],
                name="decision_shadowed",
            ),
        ),
    ]
