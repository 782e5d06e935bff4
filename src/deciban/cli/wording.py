"""What the library says, in words of the command line: there are options, and no arguments of Python."""

import re
import shlex
from collections.abc import Callable

VALUE = r"('[^']*'|[^\s:;,]+)"

# Parameters that are options of the same name.
OPTIONS = "prior|alpha|unseen|threads|folds|encoding|delimiter|reject|missing|where"

# A label in a list of Python.
LABEL = r"(?:'[^']*'|\"[^\"]*\"|True|False|-?\d+(?:\.\d+)?)"


def _bare(label: str) -> str:
    """A label of a list of Python as people write it; in its quotes where it would look like several without."""
    if label[0] in "'\"":
        return label if "," in label else label[1:-1]
    return label.lower()


PHRASES: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (rf"\b({OPTIONS})={VALUE}", lambda found: f"--{found[1]} {found[2].strip(chr(39))}"),
    (rf"\bleave ({OPTIONS})= out", r"leave --\1 out"),
    (r"^((?:[^:]*: )?)columns= names", r"\1--family names"),
    (r" \(columns that come later are for partial_fit\)", ""),
    (r"\b(?:use )?the same columns=", "the same --family"),
    (r"\btop_words: no column is Text\(\); see schema_", "no column holds texts; `deciban inspect` shows what each is"),
    (r"\btop_words: column ('[^']*') is not Text\(\); see schema_",
     r"--column: \1 holds no texts; `deciban inspect` shows what each column is"),
    (r"\btop_words: several columns are Text\(\): (.*); name one in column=",
     r"several columns hold texts: \1; name one with --column"),
    (r"\bsample\(length=([^)]*)\): no column is Text\(\) or Multinomial\(\), which alone have words",
     r"--length \1: no column holds texts or counts of words, which alone have words"),
    (r"\bmake the column Categorical\(\)", "make it one of categories with --family COLUMN=Categorical"),
    (r"\btypes=\{'([^']*)': '(\w+)'\}", lambda found: f"--type {shlex.quote(f'{found[1]}={found[2]}')}"),
    (r"\b(missing|thousands) is for (CSV files|tables)", r"--\1 is for \2"),
    (r"\bdate_format is for (CSV files|tables)", r"--date-format is for \1"),
    (r"\bquery='([^']*)', or table='([^']*)'", r"--query '\1', or --table \2"),
    (r"\bquery= and table=", "--query and --table"),
    (r"^(column (?:'([^']*)'|\"(.*)\") looks like an identifier); leave it out$",
     lambda found: f"{found[1]}; --ignore {shlex.quote(found[2] or found[3])} leaves it out"),
    (r"\bleave it out with ignore=", "leave it out with --ignore"),
    (r"\bexisting='(\w+)'", r"--\1"),
    (r"\bscan it anew", "start again"),
    (r"\btune='auto'", "a fit without --plain"),
    (r" or clf\.save\(\)", ""),
    (r", or pass force=True(?: to merge\(\))?$", ", or give --force"),
    (r"\b([A-Z][A-Za-z]+)\(\)", r"\1"),
    (rf"\[({LABEL}(?:, {LABEL})*)\]", lambda found: ", ".join(map(_bare, re.findall(LABEL, found[1])))),
]  # fmt: skip


def in_options(text: str) -> str:
    """A message of the library as the command line says it.

    >>> in_options("prior='foo': choose 'empirical'"), in_options("found 'x', never seen; or choose unseen='ignore'")
    ("--prior foo: choose 'empirical'", "found 'x', never seen; or choose --unseen ignore")
    >>> in_options("give one probability for each of ['a', 'b, c', 'd']"), in_options("one of [False, True]")
    ("give one probability for each of a, 'b, c', d", 'one of false, true')
    """
    for pattern, said in PHRASES:
        text = re.sub(pattern, said, text)
    return text
