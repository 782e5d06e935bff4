"""Functions of the page's modules, called in Node."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.node import NODE

PAGE = Path(__file__).parents[2] / "src" / "deciban" / "page"


def called(module: str, *calls: tuple[Any, ...]) -> list[Any]:
    """What a module's functions return; each call is (name, argument, …)."""
    jobs = [{"module": str(PAGE / module), "name": name, "arguments": given} for name, *given in calls]
    command = [str(NODE), str(Path(__file__).with_name("call.mjs"))]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def constant(module: str, name: str) -> Any:
    """A constant that a module exports."""
    return called(module, (name,))[0]
