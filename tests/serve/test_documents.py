"""Check the pages about the service, and deploy/: examples are run, and lists are those of the program."""

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from click import Option
from packaging.requirements import Requirement

from deciban.cli.command_serve import serve
from deciban.serve.openapi import STATUS_DESCRIPTIONS
from deciban.serve.service import Service
from deciban.serve.settings import LearnSettings, ServeSettings
from tests.support.consoles import follow

ROOT = Path(__file__).parent.parent.parent
HOWTO = ROOT / "docs" / "howto"
SERVING, LEARNING = HOWTO / "serve.md", HOWTO / "online-learning.md"
DEPLOYMENT, MONITORING = HOWTO / "deploy.md", HOWTO / "monitor.md"
REST = ROOT / "docs" / "reference" / "rest.md"
DEPLOY = ROOT / "deploy"

# Options of all commands, and what is said in words.
NOT_SHOWN = {"--json", "--debug", "--help"}


def section(document: Path, title: str) -> str:
    """Return the text below a heading, up to the next one of the same depth."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^\1 |\Z)", document.read_text(), re.DOTALL | re.MULTILINE)
    assert found, title
    return found[2]


def options() -> dict[str, Option]:
    """The options of `deciban serve` by their names."""
    return {parameter.opts[0]: parameter for parameter in serve.params if isinstance(parameter, Option)}


def figures(models: Path) -> set[str]:
    """The names of all figures of a service that learns, as Prometheus asks for them."""
    service = Service(ServeSettings.of(str(models), learn=True))
    service.open()
    try:
        text = service.metrics.text(service.models).decode()
    finally:
        service.close()
    return set(re.findall(r"^# TYPE deciban_(\w+) ", text, re.MULTILINE))


@pytest.mark.parametrize("document", [SERVING, LEARNING, MONITORING, REST], ids=lambda path: path.name)
def test_the_examples_print_what_is_shown(document: Path, tmp_path: Path) -> None:
    follow(document, tmp_path)


def test_every_option_is_told() -> None:
    pages = "".join(page.read_text() for page in (SERVING, LEARNING, DEPLOYMENT, MONITORING, REST))
    told = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", pages))
    assert set(options()) - NOT_SHOWN <= told


def test_bounds_have_the_defaults_that_are_told() -> None:
    told = {}
    for names, defaults in re.findall(r"^\| (`--[^|]*) \| ([\d, ]+) \|", section(REST, "Limits"), re.MULTILINE):
        told.update(zip(re.findall(r"--[a-z-]+", names), map(float, defaults.split(", ")), strict=True))
    assert len(told) == 8
    assert told == {name: float(options()[name].default) for name in told}


def test_bounds_of_learning_are_those_that_are_told() -> None:
    text = LEARNING.read_text()
    settings = LearnSettings()
    for number in (settings.max_retained_rows, settings.max_pending, settings.max_queued_rows, settings.snapshot_every):
        assert f"{number:,}" in text
    assert f"every {settings.decay_every:,} learned rows" in text
    assert settings.max_journal_bytes == settings.max_model_bytes == 1 << 30
    assert text.count("1 GiB") == 2
    assert settings.snapshot_seconds == 300.0
    assert "five minutes" in text
    assert settings.pending_seconds == 7 * 86_400.0
    assert "7 days of uptime" in text


def test_every_status_is_told() -> None:
    assert set(STATUS_DESCRIPTIONS) | {"500"} <= set(re.findall(r"\b[45]\d\d\b", section(REST, "Errors")))


def test_every_figure_is_told_and_every_one_told_is_there(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "weather.dcb"
    path.write_bytes((models / "weather.dcb").read_bytes())
    cells = re.findall(r"^\| (`[a-z_`, ]*) \|", section(MONITORING, "Metrics"), re.MULTILINE)
    told = {name for cell in cells for name in re.findall(r"[a-z_]+", cell)}
    there = {name for name in figures(path) if not name.endswith("_created")}
    assert told == there


def test_alerts_ask_for_figures_that_are_there(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "weather.dcb"
    path.write_bytes((models / "weather.dcb").read_bytes())
    asked = set(re.findall(r"deciban_(\w+)", (DEPLOY / "alerts.yml").read_text()))
    assert {name.removesuffix("_bucket").removesuffix("_count") for name in asked} <= figures(path)


def test_the_proxy_lets_in_what_the_service_takes_and_waits_for_its_answer() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    settings = ServeSettings("model.dcb")
    assert f"client_max_body_size {settings.requests.max_body_bytes >> 20}m;" in text
    assert f"server 127.0.0.1:{settings.port};" in text
    waits = re.search(r"proxy_read_timeout (\d+)s;", text)
    assert waits
    assert int(waits[1]) > settings.requests.response_timeout
    for line in re.findall(r"```nginx\n(.*?)```", DEPLOYMENT.read_text(), re.DOTALL)[0].splitlines():
        assert line.strip() in text, line


def test_the_command_of_the_container_and_of_the_unit_are_understood() -> None:
    for name in ("Dockerfile", "deciban.service"):
        text = (DEPLOY / name).read_text()
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", command_in(text))) <= set(options()), name


def test_the_container_pins_all_packages_of_the_service_to_versions_that_it_accepts() -> None:
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", (DEPLOY / "constraints.txt").read_text(), re.MULTILINE))
    waiting, known = [Requirement("deciban[serve]")], set[str]()
    while waiting:
        wanted = waiting.pop()
        name = wanted.name.lower().replace("_", "-")
        assert name == "deciban" or wanted.specifier.contains(pinned[name]), wanted
        if name in known:
            continue
        known.add(name)
        extras = ("", *wanted.extras)
        needed = map(Requirement, requires(wanted.name) or ())
        waiting += [
            one for one in needed if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras)
        ]
    assert pinned.keys() == known - {"deciban"}


def command_in(text: str) -> str:
    found = re.search(r"^(?:CMD|ExecStart=)(.*serve.*)$", text, re.MULTILINE)
    assert found
    return found[1]
