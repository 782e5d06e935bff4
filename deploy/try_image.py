"""An image tried as Docker would run it: read-only, without rights, its first process the service itself."""

import ctypes
import fcntl
import json
import os
import secrets
import signal
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from dockerfile import Image

# Of Linux: a network of its own, and the request that sets an interface up.
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1

SERVICE = "http://127.0.0.1:8000"
ROW = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}

# Seconds for the service to start, and to end.
PATIENCE = 120.0


def try_image(image: Image, folder: Path) -> None:
    """Make a model by the image's own command, serve it, ask, learn, stop, and start again: all is still there."""
    alone_on_loopback()
    mount_as_container(image, folder / "volumes")
    token, compiled = place_tokens(image), files_in(image.outside(image.environment["NUMBA_CACHE_DIR"]))
    image.run(["deciban", "demo", "--files"], {})
    image.run(["deciban", "fit", "deciban-demo/weather.csv", "--target", "play", "--output", "model.dcb"], {})
    check("the root is read-only", not can_write(image, "/usr/local/x") and can_write(image, "/models/x"))
    service = start(image)
    try:
        before = ask("/predict", [ROW], token)
        check("a prediction", before["rows"][0]["predicted"] == "no", before["rows"][0]["probabilities"])
        check("no answer without a token", status("/predict", [ROW]) == 401)
        image.run(image.healthcheck, {})
        check("the health check", True)
        learned = ask("/learn", {"rows": [ROW], "labels": ["yes"], "ids": ["a day"]}, token)
        check("a row is learned", learned["rows"] == [{"id": "a day", "result": "learned"}])
        after = ask("/predict", [ROW], token)["rows"]
    finally:
        stop(image, service)
    service = start(image)
    try:
        check("what was learned is there after a restart", ask("/predict", [ROW], token)["rows"] == after)
    finally:
        stop(image, service)
    now = files_in(image.outside(image.environment["NUMBA_CACHE_DIR"]))
    check("nothing was compiled anew", now == compiled, f"{len(now - compiled)} new files")


def alone_on_loopback() -> None:
    """Give this process a network of its own, so that no port is taken and nobody else is asked."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network of its own")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))


def mount_as_container(image: Image, volumes: Path) -> None:
    """A read-only root with /proc and an empty /tmp, and volumes that begin as the image has them."""
    root = str(image.root)
    mount("--bind", root, root)
    for place in image.volumes:
        copy = volumes / place.strip("/").replace("/", "-")
        subprocess.run(["cp", "--archive", "--no-target-directory", str(image.outside(place)), str(copy)], check=True)
        mount("--bind", str(copy), str(image.outside(place)))
    image.outside("/run/secrets").mkdir(parents=True, exist_ok=True)
    for place, mode in (("/tmp", "1777"), ("/run/secrets", "755"), ("/dev/shm", "1777")):
        image.outside(place).mkdir(exist_ok=True)
        mount("-t", "tmpfs", "-o", f"mode={mode},size=64m", "tmpfs", str(image.outside(place)))
    mount("-t", "proc", "proc", str(image.outside("/proc")))
    mount("-o", "remount,bind,ro", root)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def place_tokens(image: Image) -> str:
    """A token that may learn, where the image's command looks for it, for its user alone."""
    token, path = secrets.token_hex(16), image.outside("/run/secrets/deciban-tokens")
    path.write_text(f"learn {token}\n")
    path.chmod(0o400)
    os.chown(path, *image.ids())
    return token


def can_write(image: Image, path: str) -> bool:
    return subprocess.run(image.started(["touch", path]), env=image.environment, capture_output=True).returncode == 0


def start(image: Image) -> subprocess.Popen[bytes]:
    """The service as the first process of its own namespace, once it is ready."""
    rights = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")
    command = image.started([*image.entrypoint, *image.command], *rights)
    begun = time.monotonic()
    service = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *command], env=image.environment)
    while status("/health/ready") != 200:
        if service.poll() is not None or time.monotonic() > begun + PATIENCE:
            raise SystemExit("the service does not start")
        time.sleep(0.05)
    check("ready", True, f"after {time.monotonic() - begun:.1f} s")
    return service


def stop(image: Image, service: subprocess.Popen[bytes]) -> None:
    """Send the image's signal to the first process, and wait for its end, which must be in order."""
    first = int(Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()[0])
    begun = time.monotonic()
    os.kill(first, signal.Signals[image.stop_signal])
    code = service.wait(PATIENCE)
    check(f"{image.stop_signal} ends it in order", code == 0, f"after {time.monotonic() - begun:.1f} s, code {code}")


def ask(path: str, content: Any = None, token: str = "") -> Any:
    """What the service answers."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if content is None else json.dumps(content).encode()
    with urllib.request.urlopen(urllib.request.Request(SERVICE + path, data, headers), timeout=30.0) as answer:
        return json.load(answer)


def status(path: str, content: Any = None) -> int:
    """The status of the answer; 0 where there is none."""
    try:
        ask(path, content)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
    return 200


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def check(what: str, right: bool, more: object = "") -> None:
    print(f"  {'ok' if right else 'WRONG'}: {what} {more}".rstrip(), flush=True)
    if not right:
        raise SystemExit(f"{what}: it is not so")
