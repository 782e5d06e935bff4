"""Plain technical English: words and habits that docstrings, messages and pages avoid."""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A pattern, and what to write instead. Add a word here when a review stumbles over it twice.
WORDS = {
    r"\b(is|are|was|were|be) (no|none)\b(?! (longer|more|fewer|less|better|worse|need|way|such))": "is not a …",
    r"\banew\b": "again, from scratch",
    r"\b(learn\w*|learning) on line\b": "online",
    r"\bstrang(e|ers?)\b": "outlier",
    r"\bmend(s|ed|ing)?\b": "fix, correct",
    r"\bwhoever\b": "you, users",
    r"\bso many\b": "the given number of, n",
    r"\bunless given\b": "default: …",
    r"\bfigures\b": "metrics, numbers",
    r"\b(speaks?|spoken|spoke)\b": "shows, supports",
    r"\b(tells?|told)\b": "shows, reports, distinguishes",
    r"\b(says?|said)\b": "shows, states, reports, contains",
    r"\brefus(e|es|ed|al|ing)\b": "reject, raise",
    r"\bdealt\b": "assigned",
    r"\bin (its|their) turn\b": "one at a time, in turn",
    r"\b(bits?|nats?|costs?|log-loss|seconds?|bytes|decibans) a (row|column|class)\b": "per row",
    r"\d %": "8%",
    r"--(most|least)-|(?<![\w.])(most|least|fewest)_(?!squares|cost)\w+": "max_, min_",
    r"\b(MOST|FEWEST|LARGEST|LONGEST)_": "MAX_, MIN_",
    r"\bown lights\b": "according to the model itself",
    r"\bforeseen\b": "predicted",
    r"\bgiven up\b": "rejected, undecided",
    r"\b(by|of) themselves\b|\bby itself\b": "automatically, alone",
    r"\bunder way\b": "in progress, in flight",
    r"\bwhere that is asked\b": "on request",
    r"\bjudg(e|es|ed|ing)\b": "evaluate, test, score",
}

# The first word of a docstring: a verb in the imperative, or the noun that is returned (ruff's D401 checks functions).
FIRST_WORDS = {"What", "How", "Whether", "Which", "Where", "Who", "That", "Of", "So", "When"}

PAGES = [
    ROOT / "README.md",
    *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
SOURCES = [
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "examples").rglob("*.py")),
]
SCRIPTS = [path for kind in ("*.js", "*.mjs", "*.css", "*.html") for path in sorted((ROOT / "src").rglob(kind))]


def prose_of(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a file that people read: strings and comments of Python, everything of other files."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(enumerate(text.splitlines(), 1))
    lines: list[tuple[int, str]] = []
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            lines += enumerate(token.string.splitlines(), token.start[0])
    return lines


def first_words_of(path: Path) -> list[tuple[int, str]]:
    """Return the line and the first word of every docstring in a file that begins with a question word."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = (ast.get_docstring(node) or "").split()
            if words and words[0] in FIRST_WORDS:
                found.append((node.body[0].lineno, f"docstring begins with {words[0]!r}: begin with a verb or a noun"))
    return found


def habits_in(path: Path) -> list[str]:
    """Return one line for each habit in a file: its place and what to write instead."""
    found = first_words_of(path) if path.suffix == ".py" else []
    for number, line in prose_of(path):
        for pattern, better in WORDS.items():
            found += [(number, f"{match.group(0)!r}: write {better}") for match in re.finditer(pattern, line)]
    return [f"{path.relative_to(ROOT)}:{number}: {what}" for number, what in sorted(set(found))]


@pytest.mark.parametrize("path", [*PAGES, *SOURCES, *SCRIPTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_plain_english(path: Path) -> None:
    assert not habits_in(path), "\n".join(habits_in(path))


if __name__ == "__main__":  # python tests/test_language.py [FOLDER or FILE ...]
    roots = [Path(given).resolve() for given in sys.argv[1:]] or [ROOT]
    for path in [*PAGES, *SOURCES, *SCRIPTS]:
        if any(path.is_relative_to(root) for root in roots):
            print(*habits_in(path), sep="\n", end="\n" if habits_in(path) else "")
