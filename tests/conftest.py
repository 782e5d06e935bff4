"""Before the first test all kernels are compiled, on all cores, unless that was done before."""

import pytest

from deciban.kernels.compiled import cache_folder
from deciban.warmup import WARM, warm


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    folder = cache_folder()
    if folder is not None and not (folder / WARM).exists():
        for _ in warm():
            pass
