"""Model files with rewritten content and a right checksum, by the thousand: `python bench/mutations.py 5000`."""

import sys
import tempfile
import warnings
from pathlib import Path

from tests.store.files import content
from tests.store.mutations import swept
from tests.store.test_mutations import MODELS


def main() -> None:
    """Say what became of so many files of each model, and every fault."""
    warnings.simplefilter("ignore")
    count, seed = (int(argument) for argument in [*sys.argv[1:], "2000", "0"][:2])
    for name, make in MODELS.items():
        clf, rows = make()
        with tempfile.TemporaryDirectory() as folder:
            found, faults = swept(content(clf), rows, count, seed, Path(folder))
        print(f"{name}: {dict(found)}, {len(faults)} faults")
        print(*faults, sep="\n")


if __name__ == "__main__":
    main()
