"""What the first minute costs: compilation on an empty cache, kernel by kernel, and warm starts of the command.

    python bench/start.py [--kernels] [--write]

Compilation is CPU time of the compiling thread, so that other work on the machine hardly matters;
"cold - warm" is the CPU time of the whole process on an empty cache minus that on a full one. Warm times are wall-clock
seconds, the median of several runs. --kernels lists each kernel, with a number if it was compiled for several types;
--write writes bench/START.md.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RUNS = 5

# Each is run in a process of its own.
PROGRAMS = {
    "weather": """
from deciban.datasets import weather
clf = BayesClassifier().fit(weather(), "play")
rows = weather().slice(0, 3)
""",
    "numbers": """
from sklearn.datasets import load_breast_cancer
X, y = load_breast_cancer(return_X_y=True)
clf = BayesClassifier().fit(X, y)
rows = X[:3]
""",
    "mixed, two classes": """
import numpy as np, pyarrow as pa
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 900)
age = rng.normal(40 + 5 * y, 9)
income = rng.lognormal(8 + 0.3 * y)
town = np.array(["Ulm", "Bern", "Graz", "Linz"])[(rng.integers(0, 3, 900) + (y == 1)) % 4]
visits = rng.poisson(2 + y)
member = rng.random(900) < 0.2 + 0.3 * y
X = pa.table({"age": pa.array(age, mask=rng.random(900) < 0.1), "income": income,
              "rent": income * rng.uniform(0.1, 0.3, 900),
              "town": pa.array(town, mask=rng.random(900) < 0.05), "visits": visits, "member": member})
clf = BayesClassifier().fit(X, y)
rows = X.slice(0, 3)
""",
    "texts": """
from deciban.datasets import messages
clf = BayesClassifier().fit(messages(), "label")
rows = messages().slice(0, 3)
""",
}
PROGRAMS["mixed, three classes"] = PROGRAMS["mixed, two classes"].replace("integers(0, 2,", "integers(0, 3,")
AIMS = {"weather": 1.5}
DEFAULT_AIM = 8.0

MEASURED = """
import json, sys, time
from collections import defaultdict
from numba.core import event
compilations, inside = defaultdict(lambda: [0, 0.0]), []

class Listener(event.Listener):
    def on_start(self, what):
        inside.append([time.thread_time(), 0.0])

    def on_end(self, what):
        began, others = inside.pop()
        took = time.thread_time() - began
        if inside:
            inside[-1][1] += took
        function = what.data["dispatcher"].py_func
        name = f"{function.__module__.removeprefix('deciban.kernels.')}.{function.__name__}"
        compilations[name][0] += 1
        compilations[name][1] += took - others

event.register("numba:compile", Listener())
from deciban import BayesClassifier
"""

AFTER = """
clf.predict(rows)
str(clf.explain(rows))
print(json.dumps({"seconds": time.process_time(), "kernels": compilations}))
"""

COMMANDS = {
    "predict": ("predict weather.dcb tomorrow.csv", 1.0),
    "explain": ("explain weather.dcb tomorrow.csv", 1.0),
    "inspect": ("inspect weather.dcb", 1.0),
    "fit": ("fit weather.csv --target play --output new.dcb --force", 1.5),
    "--help": ("--help", None),
}


def run(code: str, folder: str) -> dict[str, Any]:
    """What a program prints at the end, with this folder for what is compiled."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def cold(listed: bool) -> Iterator[str]:
    yield "| first fit, predict and explain of | functions | compilation, s | target | cold - warm, s |"
    yield "|---|---|---|---|---|"
    lists = []
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            code = MEASURED + program + AFTER
            first, second = run(code, folder), run(code, folder)
        assert not second["kernels"], f"compiled again: {second['kernels']}"
        kernels = first["kernels"]
        total = sum(seconds for _, seconds in kernels.values())
        figures = f"{total:.1f} | {AIMS.get(name, DEFAULT_AIM)} | {first['seconds'] - second['seconds']:.1f}"
        yield f"| {name} | {sum(count for count, _ in kernels.values())} | {figures} |"
        each = sorted(kernels.items(), key=lambda item: -item[1][1])
        lists += [
            f"\n{name}: " + ", ".join(f"{kernel} {seconds:.2f}{_times(count)}" for kernel, (count, seconds) in each)
        ]
    if listed:
        yield from lists


def _times(count: int) -> str:
    """How often a function was compiled, if more than once: each time for other types of its arguments."""
    return f" ({count} times)" if count > 1 else ""


def clock(command: list[str], folder: str | None = None) -> float:
    """The median time of a command after one run that does not count."""
    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def warm() -> Iterator[str]:
    yield "| warm | s | target |"
    yield "|---|---|---|"
    deciban = str(Path(sys.executable).parent / "deciban")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([deciban, "demo", "--files", folder], stdout=subprocess.DEVNULL, check=True)
        fit = [deciban, *["fit", "weather.csv", "--target", "play", "--output", "weather.dcb"]]
        subprocess.run(fit, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        for name, (command, aim) in COMMANDS.items():
            seconds = clock([deciban, *command.split()], folder)
            yield f"| `deciban {name}` | {seconds:.2f} | {aim or ''} |"
    peer = clock([sys.executable, "-c", "import sklearn.naive_bayes"])
    ours = clock([sys.executable, "-c", "import deciban; deciban.BayesClassifier"])
    yield f"| `import deciban`, `BayesClassifier` | {ours:.2f} | {peer + 0.3:.2f}: `sklearn.naive_bayes` + 0.3 |"


if __name__ == "__main__":
    import numba

    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, numba {numba.__version__}"
    lines = [*cold("--kernels" in sys.argv or "--write" in sys.argv), "", *warm()]
    print("\n".join(lines))
    if "--write" in sys.argv:
        about = __doc__.split("\n\n")[2].strip()
        text = f"# Start-up and compilation\n\n`python bench/start.py --write`; {machine}.\n\n{about}\n\n"
        (ROOT / "bench" / "START.md").write_text(text + "\n".join(lines) + "\n")
