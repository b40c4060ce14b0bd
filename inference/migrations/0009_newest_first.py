"""The last questions of a conversation, and of a wording, are read in their order by an index."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Concurrently, and before the old indexes go: questions are asked while a large table is indexed.
    atomic = False

    dependencies = [("inference", "0008_vacuum_at_a_walk")]

    operations = [
        AddIndexConcurrently(
            model_name="generation",
            index=models.Index(fields=["session", "created_at"], name="generation_of_session"),
        ),
        AddIndexConcurrently(
            model_name="generation",
            index=models.Index(fields=["wording", "created_at"], name="generation_of_wording"),
        ),
        AddIndexConcurrently(
            model_name="decision",
            index=models.Index(fields=["wording", "-id"], name="decision_of_wording"),
        ),
        migrations.AlterField(
            model_name="generation",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="generations",
                to="inference.session",
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="wording",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="generations",
                to="inference.wording",
            ),
        ),
        migrations.AlterField(
            model_name="decision",
            name="wording",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="decisions",
                to="inference.wording",
            ),
        ),
    ]
