"""Autovacuum walks over the two tables with vectors, in short steps.

After many deletions it mends the graph of the vector index, which is nearly all computing: at its usual pace
it takes a third to a half of a core for minutes, beside those who are being answered, and in bursts longer
than an exact hit. This still keeps up with what the cache deletes, and it starts later, so that one passage
mends more.
"""

from django.db import migrations

_TABLES = ("inference_entry", "inference_wording")
_SETTINGS = {
    "autovacuum_vacuum_cost_delay": "5",  # ms, after every 20 pages that are at hand
    "autovacuum_vacuum_cost_limit": "20",
    "autovacuum_vacuum_scale_factor": "0.5",
}
_SET = ", ".join(f"{name} = {value}" for name, value in _SETTINGS.items())


class Migration(migrations.Migration):
    dependencies = [("inference", "0007_gray_observations")]

    operations = [
        migrations.RunSQL(
            f"ALTER TABLE {table} SET ({_SET})", f"ALTER TABLE {table} RESET ({', '.join(_SETTINGS)})"
        )
        for table in _TABLES
    ]
