"""The folder in which worker processes share their metrics.

prometheus_client decides when it is imported whether metrics are shared, by an environment variable. So whoever starts
the workers enters `shared_folder` first, and imports `metrics` only in them. Nothing here imports it.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator

from deciban.util.shutdown import mark_finished, remove_at_exit

# What prometheus_client looks for.
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@contextlib.contextmanager
def shared_folder() -> Iterator[str]:
    """A folder that only this user can read, named in the environment that workers inherit; removed in the end."""
    with tempfile.TemporaryDirectory(prefix="deciban-metrics-", ignore_cleanup_errors=True) as folder:
        before = os.environ.get(FOLDER_VARIABLE)
        os.environ[FOLDER_VARIABLE] = folder
        remove_at_exit(folder)
        try:
            yield folder
        finally:
            mark_finished(folder)
            if before is None:
                del os.environ[FOLDER_VARIABLE]
            else:
                os.environ[FOLDER_VARIABLE] = before
