"""Cost of exact sums: fit time and model size, compared with another checkout of deciban in the same run.

    python bench/exact.py --against ../before/src [--write]

Each side runs in a separate process, alternating; times are CPU times, the minimum of all runs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from reports import write_part

HERE = Path(__file__).resolve().parent
ROUNDS, RUNS = 3, 5
ROWS = 1_000_000

HEAD = """# Exact sums

`bench/exact.py`: CPU time of a fit without tuning, and size of the model file, compared with the version before
sums of cells were exact (weight, mean and scatter in doubles); random numbers, two classes. Minimum of {runs} runs,
alternating.

| | before | exact | ratio |
|---|---:|---:|---:|
"""


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(ROWS, 20)), rng.integers(0, 2, ROWS)
    holes = np.where(rng.random(x.shape) < 0.1, np.nan, x)
    return {
        "Gaussian, 1,000,000 × 20, float64": (x, y),
        "Gaussian, 1,000,000 × 20, float32": (x.astype(np.float32), y),
        "Gaussian, 1,000,000 × 20, int64": ((100 * x).astype(np.int64), y),
        "Gaussian, 1,000,000 × 20, a tenth missing": (holes, y),
        "Gaussian, 1,000,000 × 20, log-normal numbers (cells up to e^±15 apart)": (np.exp(3.0 * x), y),
        "Gaussian, 200,000 × 100, float64": (x.reshape(-1, 100), y[: ROWS // 5]),
    }


def least(run: Callable[[], object]) -> float:
    """Return the minimum CPU time, in seconds."""
    found = []
    for _ in range(RUNS):
        begun = time.process_time()
        run()
        found.append(time.process_time() - begun)
    return min(found)


def measure() -> dict[str, float]:
    """Return milliseconds, and bytes, of the imported deciban."""
    from deciban import BayesClassifier, Gaussian, JointGaussian
    from deciban.store.model_file import content

    results = {}
    given = tables()
    for name, (x, y) in given.items():
        clf = BayesClassifier(Gaussian(), tune=None)
        clf.fit(x[:1000], y[:1000])
        results[name] = 1000.0 * least(lambda clf=clf, x=x, y=y: clf.fit(x, y))
    x, y = next(iter(given.values()))
    joint = BayesClassifier(JointGaussian(), tune=None).fit(x[:5000], y[:5000])
    results["JointGaussian, 1,000,000 × 20, float64"] = 1000.0 * least(lambda: joint.fit(x, y))
    one = BayesClassifier(Gaussian(), tune=None).fit(x, y)

    def rows() -> None:
        for k in range(50):
            one.partial_fit(x[k : k + 1], y[k : k + 1])

    results["Gaussian, partial_fit of one row × 20"] = 20.0 * least(rows)
    for name, clf in (("Gaussian", one), ("JointGaussian", joint)):
        results[f"model file, {name}, 20 columns (bytes)"] = len(content(clf.fitted_))
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path, help="the folder `src` of another checkout")
    parser.add_argument("--write", action="store_true", help="write its part of bench/SPEED.md")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return
    sides: dict[Path, dict[str, float]] = {options.against: {}, HERE.parent / "src": {}}
    for _ in range(ROUNDS):
        for side, found in sides.items():
            command = [sys.executable, __file__, "--measure"]
            environment = {**os.environ, "PYTHONPATH": str(side.resolve()), "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            for name, value in json.loads(done.stdout.splitlines()[-1]).items():
                found[name] = min(value, found.get(name, value))
    before, exact = sides.values()
    lines = [
        f"| {name} | {before[name]:,.0f} | {exact[name]:,.0f} | {exact[name] / before[name]:.2f} |"
        if "bytes" in name
        else f"| {name} (ms) | {before[name]:,.2f} | {exact[name]:,.2f} | {exact[name] / before[name]:.2f} |"
        for name in before
    ]
    text = HEAD.format(runs=ROUNDS * RUNS) + "\n".join(lines) + "\n"
    print(text)
    if options.write:
        write_part("SPEED.md", "exact.py", text.splitlines())


if __name__ == "__main__":
    main()
