"""Learning on line that ends by kill -9: is what was acknowledged there, and nothing else?

    python bench/crashes.py [--rounds 1000] [--seed 1] [--write]

In every round a process learns, relabels and forgets rows from two threads, on one model that is never made anew. It is
killed at a random time, or at one of the points where files are about to change or have just changed; its model file is
written, and its journal shortened, all the time. Then the model is loaded again and compared with what had been
acknowledged: rows by their ids, and counts to the bit. --write puts the page into bench/CRASHES.md.
"""

import os
import platform
import sqlite3
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]
from tests.serve.crashing import POINTS, crashes  # noqa: E402 - its folder is not always on the path

# One round of so many is killed at a point that is chosen, the others at a random time.
AT_A_POINT = 4


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    begin, kinds = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, crashes(Path(folder), options.seed) as killed:
        for k in range(options.rounds):
            point = None if k % AT_A_POINT else POINTS[k // AT_A_POINT % len(POINTS)]
            killed.round(point)
            kinds[point or "a random time"] += 1
            if k % 20 == 19:
                print(f"\r{k + 1} rounds, {killed.acknowledged:,} requests acknowledged", end="", file=sys.stderr)
    print(file=sys.stderr)
    lines = [
        "# Kill -9 while learning on line",
        "",
        f"`python bench/crashes.py --rounds {options.rounds} --seed {options.seed} --write`; {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {time.monotonic() - begin:.0f} s.",
        "",
        "Every round a process that learns, relabels and forgets is killed, and the model is loaded again. Rows by",
        "their ids, and counts to the bit, were those that had been acknowledged; requests without an answer were in",
        "the model as a whole, or not at all.",
        "",
        "| killed | rounds |",
        "|---|---|",
        *(f"| {NAMES.get(kind, kind)} | {times} |" for kind, times in kinds.most_common()),
        "",
        f"{killed.rounds:,} rounds, {killed.acknowledged:,} requests acknowledged, {killed.unanswered:,} under way "
        f"when the process was killed; **0 differences**.",
    ]
    text = "\n".join(lines) + "\n"
    if options.write:
        (ROOT / "bench" / "CRASHES.md").write_text(text)
    print(text)


NAMES = {
    "a random time": "at a random time",
    "announced": "when a model file is announced to the journal, and not yet in its place",
    "replaced": "when it has just taken its place",
    "settled": "while the journal is shortened behind it",
    "committed": "when a request is committed, and not yet answered",
}

if __name__ == "__main__":
    main()
