"""Completion by the shell."""

import shutil
import subprocess

import pytest
from click.shell_completion import BashComplete

from deciban.cli import app
from tests.support.command import Deciban


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["predict"], "file"),
        (["predict", "m.dcb"], "file"),
        (["evaluate"], "file"),
        (["merge", "a.dcb"], "file"),
        (["fit", "t.csv", "--output"], "file"),
        (["decide", "m.dcb", "t.csv", "--costs"], "file"),
        ([], "plain"),
    ],
)
def test_files_are_completed_where_files_are_meant(words: list[str], kind: str) -> None:
    found = BashComplete(app, {}, "deciban", "_DECIBAN_COMPLETE").get_completions(words, "")
    assert {item.type for item in found} == {kind}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_falls_back_to_files(deciban: Deciban) -> None:
    """Also behind what the command does not know of."""
    script = deciban("completion", "bash").out
    done = subprocess.run(["bash", "-c", f"{script}\ncomplete -p deciban"], capture_output=True, text=True, check=True)
    assert {"bashdefault", "default"} <= set(done.stdout.split())
