"""What a prompt is made of: the scope's part in it, summaries of older turns, how past turns are read, and
how much of an entry was used again."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inference", "0002_semantic_layer")]

    operations = [
        migrations.AddField(
            model_name="scope",
            name="prompt",
            field=models.JSONField(
                default=dict, help_text="Knowledge by content, task, and how many turns a prompt shows."
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="rendered",
            field=models.BooleanField(
                default=False,
                help_text="As part of a history the model has read this; its view no longer changes.",
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="model_question",
            field=models.TextField(
                blank=True,
                default="",
                help_text="The entry's wording, which the model reads instead of the question asked.",
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="generation",
            name="reuse",
            field=models.CharField(
                blank=True,
                choices=[("answer", "Answer"), ("rewrite", "Rewrite"), ("prefix", "Prefix")],
                default="",
                help_text="How the entry was used, where there was one to use.",
                max_length=10,
            ),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name="Summary",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("covered", models.CharField(db_index=True, help_text="Hash of the turns.", max_length=64)),
                ("turns", models.JSONField(help_text="As the model sees them.")),
                ("text", models.TextField()),
                (
                    "source",
                    models.CharField(
                        choices=[("extract", "Extract"), ("engine", "Engine")],
                        default="extract",
                        max_length=10,
                    ),
                ),
                ("used", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="summaries",
                        to="inference.session",
                    ),
                ),
            ],
            options={"verbose_name_plural": "summaries"},
        ),
        migrations.AddConstraint(
            model_name="summary",
            constraint=models.UniqueConstraint(
                fields=("session", "covered"), name="one_summary_of_the_same_turns"
            ),
        ),
    ]
