"""Folder in which worker processes share their metrics.

prometheus_client decides on import, by an environment variable, whether metrics are shared. So the process that starts
workers enters `create_shared_folder` first, and only the workers import `metrics`. This module does not import it.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator

from deciban.util.shutdown import mark_finished, remove_at_exit

# Environment variable read by prometheus_client.
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@contextlib.contextmanager
def create_shared_folder() -> Iterator[str]:
    """Create a private folder, name it in the environment that workers inherit, and remove it at the end."""
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
