"""A Dockerfile read and carried out in a folder that is the root of the image."""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# What the build and the container have in their environment from the start.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The name and the argument of each instruction; lines that end in a backslash go on."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, argument = line.strip().partition(" ")
            yield name.upper(), argument.strip()


def words(argument: str) -> list[str]:
    """The words of an argument, which is a list of JSON or as in a shell."""
    if argument.startswith("["):
        found: list[str] = json.loads(argument)
        return found
    return shlex.split(argument)


@dataclass
class Image:
    """A root, and how programs in it are started. Its fields are those of an image's configuration."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "root"
    folder: str = "/"
    volumes: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    stop_signal: str = "SIGTERM"

    def note(self, name: str, argument: str) -> None:
        """Carry out an instruction that says how programs are started."""
        match name:
            case "ENV":
                self.environment |= dict(word.split("=", 1) for word in words(argument))
            case "USER":
                self.user = argument
            case "WORKDIR":
                self.folder = os.path.join(self.folder, argument)
                self.outside(self.folder).mkdir(parents=True, exist_ok=True)
            case "VOLUME":
                self.volumes += words(argument)
            case "HEALTHCHECK":
                self.healthcheck = words(argument.partition("CMD ")[2])
            case "ENTRYPOINT":
                self.entrypoint = words(argument)
            case "CMD":
                self.command = words(argument)
            case "STOPSIGNAL":
                self.stop_signal = argument
            case "EXPOSE":
                pass
            case _:
                raise SystemExit(f"{name}: this instruction is not known here; teach it to {Path(__file__).name}")

    def outside(self, path: str) -> Path:
        """A path in the image as it is seen from outside."""
        return self.root / path.lstrip("/")

    def copy(self, context: Path, names: list[str]) -> None:
        """Copy files and folders of the context; of folders their content, and nothing that was compiled."""
        *sources, target = names
        place = self.outside(os.path.join(self.folder, target))
        place.mkdir(parents=True, exist_ok=True)
        for source in (Path(found) for name in sources for found in glob.glob(str(context / name))):
            if source.is_dir():
                shutil.copytree(source, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, place)

    def run(self, command: list[str], more: dict[str, str]) -> None:
        """Run a command in the image, as its user; more: variables that are not kept."""
        subprocess.run(self.started(command), env=self.environment | more, check=True, stdin=subprocess.DEVNULL)

    def started(self, command: list[str], *options: str) -> list[str]:
        """The command as it is run from outside; options: of setpriv, which changes the user."""
        number, group = self.ids()
        inside = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        who = ["setpriv", f"--reuid={number}", f"--regid={group}", "--clear-groups", *options]
        return ["chroot", str(self.root), *who, "/bin/sh", "-c", inside]

    def ids(self) -> tuple[int, int]:
        """The numbers of the user and its group."""
        for line in self.outside("/etc/passwd").read_text().splitlines():
            name, _, number, group, *_ = line.split(":")
            if name == self.user:
                return int(number), int(group)
        raise SystemExit(f"USER {self.user}: there is no such user in the image")
