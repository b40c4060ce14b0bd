"""What the console searches the cache's tables by. Nothing that a hit changes is indexed: that would make
every hit rewrite the index, too."""

from django.db import migrations

# Overlapping pairs of characters, so that a part of a word is found in any language: Chinese has no spaces,
# and the embedded Postgres no pg_trgm. The first 400 characters, since substr counts from the beginning. At
# its cost the index is asked, never every row.
BIGRAMS = """
    CREATE FUNCTION console_bigrams(whole text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
        SELECT coalesce(array_agg(DISTINCT substr(short.it, at, 2)), '{}')
        FROM (SELECT lower(left(whole, 400)) AS it) AS short,
             generate_series(1, greatest(length(short.it) - 1, 0)) AS at
    $$
"""

INDEXES = {
    "console_wording_bigrams": "inference_wording USING gin (console_bigrams(question))"
    " WITH (fastupdate = off)",
    "console_entry_newest": "inference_entry (created_at DESC, id DESC)",
    "console_entry_scope_newest": "inference_entry (scope_id, created_at DESC, id DESC)",
    "console_wording_suspect": "inference_wording (entry_id) WHERE state = 'suspect'",
    "console_decision_entry": "inference_decision (entry_id, id DESC)",
    "console_decision_time": "inference_decision (created_at)",
    "console_generation_time": "inference_generation (created_at)",
}


class Migration(migrations.Migration):
    dependencies = [("cacheadmin", "0001_audit_record")]

    operations = [
        migrations.RunSQL(BIGRAMS, "DROP FUNCTION console_bigrams(text)"),
        *(
            migrations.RunSQL(f"CREATE INDEX {name} ON {what}", f"DROP INDEX {name}")
            for name, what in INDEXES.items()
        ),
    ]
