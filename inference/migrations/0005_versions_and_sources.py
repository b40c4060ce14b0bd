"""What version counts, what answers are made from, and when an entry was last found right anew."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inference", "0004_invalidations"),
    ]

    operations = [
        migrations.CreateModel(
            name="DataSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200, unique=True)),
                (
                    "version",
                    models.CharField(
                        blank=True, help_text="As of the last change, where told.", max_length=200
                    ),
                ),
                ("changes", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Version",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("app", models.CharField(max_length=100)),
                ("knowledge", models.CharField(max_length=100)),
                (
                    "system_prompt",
                    models.TextField(blank=True, help_text="Nothing: the one of the settings.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name="entry",
            name="refreshed_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When a fresh answer last said the same, and its life began anew.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="sources",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text='What it is made from: {"key", "version", "changes"} as of when it was read.',
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("ended_at", None)), fields=["last_active"], name="session_open"
            ),
        ),
        migrations.AddIndex(
            model_name="version",
            index=models.Index(fields=["app", "-id"], name="version_newest"),
        ),
    ]
