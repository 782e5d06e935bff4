"""Follow the Dockerfile step by step in a clean root, where no Docker runs, and try the service that comes out.

    python3 deploy/follow_dockerfile.py FOLDER [--bind PATH]... [--keep]

It needs root, Linux, and Debian's `debootstrap` and `util-linux`; FOLDER must not exist and is deleted at the end. The
base image, python:3.11-slim, is stood in for by a minimal Debian 12, which has Python 3.11, with an environment in
/usr/local. Every other instruction is carried out as it stands. All mounts are in namespaces of this program and end
with it. pip is told where packages come from as outside: by the variables PIP_* and by pip.conf; folders that these
name are handed in with --bind. It takes some minutes.
"""

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

from dockerfile import Image, instructions, words
from try_image import try_image

HERE = Path(__file__).resolve().parent

# Of Linux: mounts of its own.
CLONE_NEWNS = 0x00020000

PACKAGES = "ca-certificates,python3,python3-venv"

# The images that the clean root can stand in for.
STANDS_FOR = ("python:3.11-slim",)

# What pip is told from outside.
PIP_FILES = ("/etc/pip.conf", "/root/.config/pip/pip.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/resolv.conf")
PIP_PREFIXES = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


def main() -> None:
    options = arguments()
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True)
    have_own_mounts()
    try:
        image = followed(folder / "root", options.bind)
        print(f"image: {size_of(folder / 'root') >> 20} MB, user {image.user}, volumes {', '.join(image.volumes)}")
        (folder / "volumes").mkdir()
        try_image(image, folder)
        print("the image works")
    finally:
        if not options.keep:
            remove(folder)


def have_own_mounts() -> None:
    """See to it that what is mounted from now on is seen by this process and its children alone, and ends with them."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        sys.exit(f"mounts of its own need root: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the root is made; must not exist")
    parser.add_argument("--bind", action="append", default=[], help="a folder that pip needs, shown while building")
    parser.add_argument("--keep", action="store_true", help="do not delete the folder at the end")
    return parser.parse_args()


def followed(root: Path, binds: list[str]) -> Image:
    """The image that the Dockerfile describes, made in `root`."""
    image = Image(root)
    for name, argument in instructions((HERE / "Dockerfile").read_text()):
        print(f"{name} {' '.join(argument.split())[:100]}", flush=True)
        match name:
            case "FROM":
                make_base(root, argument)
                bind_for_building(root, binds)
            case "RUN":
                image.run(["/bin/sh", "-c", argument], outside_variables())
            case "COPY":
                image.copy(HERE.parent, words(argument))
            case _:
                image.note(name, argument)
    unbind(root)
    return image


def make_base(root: Path, name: str) -> None:
    """A minimal Debian with Python 3.11 where the image has it: in /usr/local."""
    if name not in STANDS_FOR:
        sys.exit(f"FROM {name}: only {', '.join(STANDS_FOR)} can be stood in for")
    log = root.parent / "debootstrap.log"
    with log.open("w") as told:
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
        subprocess.run(command, stdout=told, stderr=told, check=True)
    subprocess.run(["chroot", str(root), "python3", "-m", "venv", "/usr/local"], check=True)


def outside_variables() -> dict[str, str]:
    """What is told to the build about where packages come from; nothing of it is in the image."""
    return {name: value for name, value in os.environ.items() if name.startswith(PIP_PREFIXES)}


def bind_for_building(root: Path, binds: list[str]) -> None:
    """Show the build what it needs: /proc and /dev/shm, and, read-only, pip's settings and folders that these name."""
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    (root / "dev/shm").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(root / "dev/shm")], check=True)
    for source in [*(name for name in PIP_FILES if os.path.exists(name)), *binds]:
        place = root / source.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if os.path.isdir(source):
            place.mkdir(exist_ok=True)
        else:
            place.touch()
        subprocess.run(["mount", "--bind", source, str(place)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)


def unbind(root: Path) -> None:
    """Take away again what was only there to build."""
    for place in mounts_below(root):
        subprocess.run(["umount", place], check=True)


def mounts_below(folder: Path) -> list[str]:
    """What is mounted below a folder, the last one first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line.split()[1] for line in reversed(lines) if line.split()[1].startswith(f"{folder}/")]


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())


def remove(folder: Path) -> None:
    """Delete the folder; never what is mounted in it."""
    for place in mounts_below(folder):
        subprocess.run(["umount", "--lazy", place], check=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
