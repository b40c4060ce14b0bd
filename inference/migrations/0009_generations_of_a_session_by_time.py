"""A conversation's questions are read in the order they were asked: its index gets the time."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Concurrently, and before the old index goes: questions are asked while a large table is indexed.
    atomic = False

    dependencies = [("inference", "0008_vacuum_at_a_walk")]

    operations = [
        AddIndexConcurrently(
            model_name="generation",
            index=models.Index(fields=["session", "created_at"], name="generation_of_session"),
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
    ]
