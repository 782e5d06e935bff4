"""The token file, and that the time a token takes does not tell how wrong it is."""

import hmac
import os
import statistics
import time
from pathlib import Path

import pytest

from deciban.errors import UsageError
from deciban.serve import access as module
from deciban.serve.access import Tokens
from tests.serve.requests import LEARN, READ, token_file


def test_roles(tmp_path: Path) -> None:
    text = f"# who may ask\n\nread {READ}\n  learn   {LEARN}  \nread {'s' * 16}\n"
    known = Tokens.open(token_file(tmp_path, text))
    assert known.role(READ.encode()) == "read"
    assert known.role(b"s" * 16) == "read"
    assert known.role(LEARN.encode()) == "learn"
    for wrong in (b"", b"r", b"r" * 19, b"r" * 21, b"R" * 20, b"# who may ask", b"read", b"\xff" * 20, b"r" * 100_000):
        assert known.role(wrong) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the token file has no tokens"),
        ("# nothing\n\n", "the token file has no tokens"),
        (f"{READ}\n", "line 1: expected 'read TOKEN'"),
        (f"read {READ}\nwrite {LEARN}\n", "line 2: expected"),
        (f"read {READ} behind\n", "line 1: expected"),
        ("read\n", "line 1: expected"),
        ("read fifteen-letters\nread fourteen-lette\n", "line 2: the token has fewer than 16"),
        ("read 0123456789ab/def#\n", "only ASCII letters"),
        ("read 0123456789abcdäöü\n", "only ASCII letters"),
        (f"read {READ}\nlearn {READ}\n", "line 2: duplicate token"),
    ],
)
def test_a_faulty_file_is_refused_and_no_token_is_told(tmp_path: Path, text: str, told: str) -> None:
    text = text.replace("fifteen-letters", "sixteen-letters-").replace("fourteen-lette", "fifteen-letters")
    with pytest.raises(UsageError, match=told) as found:
        Tokens.open(token_file(tmp_path, text))
    assert all(len(word) < 14 or word not in str(found.value) for line in text.splitlines() for word in line.split())


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the token file: No such file"):
        Tokens.open(str(tmp_path / "absent"))
    with pytest.raises(UsageError):
        Tokens.open(str(tmp_path))
    path = tmp_path / "large"
    path.write_bytes(b"#" * (1 << 20))
    path.chmod(0o600)
    with pytest.raises(UsageError, match="1,048,576 bytes or more"):
        Tokens.open(str(path))


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize(("mode", "fine"), [(0o600, True), (0o400, True), (0o440, True), (0o640, True), (0o660, False),
                                            (0o604, False), (0o644, False), (0o602, False)])  # fmt: skip
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int, fine: bool) -> None:
    path = token_file(tmp_path, f"read {READ}\n", mode)
    if fine:
        assert Tokens.open(path).role(READ.encode()) == "read"
    else:
        with pytest.raises(UsageError, match="chmod 600"):
            Tokens.open(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(UsageError, match="not a regular file"):
        Tokens.open(str(tmp_path / "pipe"))


def test_tokens_are_replaced_while_the_service_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.0)
    path = token_file(tmp_path, f"read {READ}\n")
    known = Tokens.open(path)
    assert (known.role(READ.encode()), known.role(LEARN.encode())) == ("read", None)
    token_file(tmp_path, f"learn {LEARN}\n")
    assert (known.role(READ.encode()), known.role(LEARN.encode())) == (None, "learn")
    for faulty in ("", "read short\n"):
        token_file(tmp_path, faulty)
        assert known.role(LEARN.encode()) == "learn", "the old ones stay in force"
        assert known.problem is not None
    os.unlink(path)
    assert known.role(LEARN.encode()) == "learn"
    new = tmp_path / "new"
    new.write_text(f"read {READ}\n")
    new.chmod(0o600)
    os.replace(new, path)
    assert (known.role(READ.encode()), known.role(LEARN.encode())) == ("read", None)
    assert known.problem is None


def test_the_file_is_looked_at_once_a_second_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Tokens.open(token_file(tmp_path, f"read {READ}\n"))
    looked: list[str] = []
    monkeypatch.setattr(module, "_signature", looked.append)
    for _ in range(100):
        known.role(b"x")
    assert len(looked) <= 1


def test_every_token_is_compared_whatever_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is right, the last is right, none is, some begin alike: the same steps."""
    many = [f"{number:020d}" for number in range(10)]
    known = Tokens.open(token_file(tmp_path, "".join(f"learn {one}\n" for one in many)))
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def counting(mine: bytes, theirs: bytes) -> bool:
        compared.append((len(mine), len(theirs)))
        return real(mine, theirs)

    monkeypatch.setattr(module.hmac, "compare_digest", counting)
    for sent in (many[0], many[9], many[5][:19], "", "x" * 20, "0" * 19 + "x", "x" * 5000):
        compared.clear()
        known.role(sent.encode())
        assert compared == [(32, 32)] * 10


def test_the_time_does_not_tell(tmp_path: Path) -> None:
    """A token that shares all but its last character with a right one takes as long as one that shares nothing.

    Kinds take turns, and medians of many are compared, so that a busy machine slows all alike; a comparison that stops
    at the first difference, or at the first token that is right, differs by far more than the bound allows."""
    many = [f"{number:060d}" for number in range(50)]
    known = Tokens.open(token_file(tmp_path, "".join(f"read {one}\n" for one in many)))
    kinds = {
        "the first": many[0],
        "the last": many[-1],
        "nearly the first": many[0][:-1] + "x",
        "nothing alike": "x" * 60,
    }
    taken: dict[str, list[int]] = {kind: [] for kind in kinds}
    for _ in range(2000):
        for kind, token in kinds.items():
            sent = token.encode()
            start = time.perf_counter_ns()
            known.role(sent)
            taken[kind].append(time.perf_counter_ns() - start)
    medians = {kind: statistics.median(times) for kind, times in taken.items()}
    assert max(medians.values()) < 1.5 * min(medians.values()), medians
