"""A migrated database for benchmarks that work inside the product's code, without a stack."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from launch.embedded import Embedded


@contextmanager
def migrated(
    name: str, folder: Path | None = None, *, own: bool = False, settings: str = "config.settings.local"
) -> Iterator[None]:
    """Django set up on DATABASE_URL, or, where that is not set or it is to be an `own` one, on an embedded
    database: in `folder` it is kept, otherwise thrown away. Models may be imported within only."""
    with ExitStack() as stack:
        if own or not os.environ.get("DATABASE_URL"):
            keep = folder is not None
            folder = folder or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix=f"reprise-{name}-"))
            )
            services = Embedded(folder / "var", durable=False)
            stack.callback(services.stop if keep else services.discard)
            services.start()
            os.environ |= services.environment()
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
        import django
        from django.core.management import call_command

        from config import logging

        django.setup()
        logging.configure()  # to stderr: what a benchmark prints is its result
        call_command("migrate", verbosity=0)
        yield
