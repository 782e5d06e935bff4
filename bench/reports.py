"""Write the results of a script into a report: SPEED.md, ACCURACY.md or FILES.md.

Such a report has a part for each script, between two comments that name the script; everything else is written by hand.
"""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent


def write_part(report: str, script: str, lines: list[str]) -> None:
    """Replace the part of a script in a report, or append it, with each heading one level deeper."""
    path = HERE / report
    text = path.read_text()
    first, last = f"<!-- bench/{script} -->", f"<!-- end of bench/{script} -->"
    part = "\n".join([first, *(f"#{line}" if line.startswith("#") else line for line in lines)]).rstrip() + f"\n{last}"
    found = re.search(f"{re.escape(first)}\n.*{re.escape(last)}", text, re.DOTALL)
    path.write_text(text[: found.start()] + part + text[found.end() :] if found else f"{text.rstrip()}\n\n{part}\n")
