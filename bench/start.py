"""What the first minute costs: compilation on an empty cache, kernel by kernel, and warm starts of the command.

    python bench/start.py [--kernels] [--write]

Processor seconds of compilation are those of the thread that compiles, so other work on the machine hardly shows.
--kernels lists each kernel; --write puts the figures into bench/START.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Each is run in a process of its own, in which no kernel is compiled yet.
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
    "mixed": """
import numpy as np, pyarrow as pa
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 900)
age = rng.normal(40 + 5 * y, 9)
income = rng.lognormal(8 + 0.3 * y)
town = np.array(["Ulm", "Bern", "Graz", "Linz"])[(rng.integers(0, 3, 900) + (y == 1)) % 4]
visits = rng.poisson(2 + y)
member = rng.random(900) < 0.2 + 0.3 * y
spent = income * rng.uniform(0.1, 0.3, 900)
X = pa.table({"age": pa.array(age, mask=rng.random(900) < 0.1), "income": income, "spent": spent,
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
AIMS = {"weather": 1.5, "numbers": 8.0, "mixed": 10.0, "texts": 10.0}

MEASURED = """
import json, sys, time
from collections import defaultdict
start = time.perf_counter()
from numba.core import event
spent, inside = defaultdict(lambda: [0, 0.0]), []

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
        spent[name][0] += 1
        if spent[name][0] > 1 and "--signatures" in sys.argv: print(name, what.data["args"], file=sys.stderr)
        spent[name][1] += took - others

event.register("numba:compile", Listener())
from deciban import BayesClassifier
"""

AFTER = """
clf.predict(rows)
print(clf.explain(rows), file=open("/dev/null", "w"))
print(json.dumps({"seconds": time.perf_counter() - start, "kernels": spent}))
"""


def compiled(program: str) -> dict[str, object]:
    """What was compiled by a program in a process without a cache: its seconds, and those of each kernel."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        code = MEASURED + PROGRAMS[program] + AFTER
        command = [sys.executable, "-c", code, *sys.argv[1:]]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    for program in [name for name in sys.argv[1:] if name in PROGRAMS] or PROGRAMS:
        found = compiled(program)
        kernels = found["kernels"]
        total = sum(seconds for _, seconds in kernels.values())
        times = sum(count for count, _ in kernels.values())
        print(
            f"{program}: {total:.1f} s of compilation ({times} times {len(kernels)} functions), aim {AIMS[program]}; "
            f"{found['seconds']:.1f} s in all"
        )
        for name, (count, seconds) in sorted(kernels.items(), key=lambda item: -item[1][1])[:60]:
            print(f"    {seconds:6.2f} {count:3d} {name}")
