"""The page as one HTML file: to be served with a model that it asks for, or to be opened with one that is in it."""

from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from deciban.datasets import weather
from deciban.errors import UsageError
from deciban.export.javascript import scorer_source
from deciban.export.model_json import model_as_json
from deciban.fitting.fit import fit
from deciban.model.fitted import Fitted, Settings
from deciban.report.data import ReportData, collect_report_data
from deciban.report.form import form_data
from deciban.report.report import UNIT, render_sections
from deciban.util.text_tables import count_noun
from deciban.util.version import __version__
from deciban.web.html import Html, common_css, note, page_head, paragraph, tag
from deciban.web.scripts import bundle, content_policy, data_script, form_modules

# Bytes of a model that browsers open without delay; a larger one is rounded, or left out.
MAX_BYTES_OF_A_MODEL = 20_000_000

DEMO_INTRO = (
    "This demo model predicts tennis from fourteen days of weather; "
    "run deciban playground MODEL.dcb --output page.html for your own."
)


def render_page(model: Fitted | None, *, service: bool, title: str) -> tuple[str, str]:
    """Return the page and its Content-Security-Policy.

    service: the page requests predictions from its service and does not contain the model. Otherwise the page is
    self-contained, with `model` or a demo model of the weather.
    """
    if service:
        status = [
            tag("p", id="service-status", class_="quiet"),
            tag("p", id="service-problem", class_="wrong", role="alert"),
        ]
        return _page(title, tag("div", status, id="service"), [], Html(), Html())
    fitted = model if model is not None else fit(Settings(tune=None), weather(), "play")
    contents = collect_report_data(fitted, title)
    lead = paragraph(DEMO_INTRO if model is None else _lead(contents), class_="quiet")
    data, problem = _embed(contents)
    return _page(title, lead, data, problem, render_sections(contents), demo=model is None)


def render_folder_page(title: str) -> tuple[str, str]:
    """Return the page that lists the models of a service, and its Content-Security-Policy."""
    token = [
        tag("label", "This service requires a token", for_="token"),
        tag("input", type="password", id="token", autocomplete="off", required=True),
        tag("button", "Continue", type="submit"),
    ]
    main = [
        tag("ul", id="models"),
        tag("p", id="service-problem", class_="wrong", role="alert"),
        tag("form", token, class_="card token", id="token-form", hidden=True),
    ]
    script = bundle([files("deciban.web") / "dom.js", *(_modules(("client", "folder")))], "$folder.startFolder();")
    body = tag("body", tag("header", tag("h1", title), class_="top"), tag("main", main), tag("script", Html(script)))
    return _document(title, body, script)


def _lead(contents: ReportData) -> str:
    model = contents.data["model"]
    target = f" predicts {model['target']}" if model["target"] else ""
    sizes = f"{count_noun(len(model['classes']), 'class')} and {count_noun(model['columns'], 'column')}"
    return f"This model{target or ' was'}, fitted on {count_noun(model['rows'], 'row')} with {sizes}."


def _embed(contents: ReportData) -> tuple[list[Html], Html]:
    """Return the model and the data of its form as scripts; or a note on why they are missing."""
    try:
        model = data_script("model-json", model_as_json(contents.fitted))
        if len(model) <= MAX_BYTES_OF_A_MODEL:
            return [model, data_script("form-data", form_data(contents))], Html()
    except UsageError as error:
        return [], note(f"This model needs deciban serve: {error}")
    return [], note(f"The model takes {len(model) / 1e6:.0f} MB, too much for a page; use deciban serve instead.")


def _page(
    title: str, lead: Html, data: Sequence[Html], problem: Html, sections: Html, *, demo: bool = False
) -> tuple[str, str]:
    """Return the document with its introduction, model data or the note on why it is missing, and report sections.

    demo: the page is not about a model of the user, so it starts with the playground.
    """
    modules = [one for one in files("deciban.page").iterdir() if one.name.endswith(".js") and one.name != "folder.js"]
    start = "$main.start({ mountPlayground: $playground.mountPlayground });"
    ordered = sorted(modules, key=lambda one: one.name)  # the same page on every machine
    script = f"{scorer_source()}\n{bundle([*form_modules(), *ordered], start)}"
    panels = [
        ("try", "Try it", problem, "try"),
        ("playground", "Playground", Html(), "playground"),
        ("model", "Model", sections, "report"),
    ]
    if demo:
        panels.sort(key=lambda panel: panel[0] != "playground")
    bar = tag("div", (_tab(name, title) for name, title, _, _ in panels), class_="tabs", id="tabs", role="tablist",
              aria_label="Parts of the page")  # fmt: skip
    body = tag(
        "body",
        tag("a", "Skip to content", class_="skip", href="#main-part"),
        tag("header", tag("h1", title), lead, tag("p", id="page-problem", class_="wrong", role="alert"), class_="top"),
        tag(
            "main",
            bar,
            tag("noscript", paragraph("This page needs JavaScript.")),
            (_panel(name, inside, root) for name, _, inside, root in panels),
            id="main-part",
            tabindex="-1",
        ),
        tag("footer", paragraph(f"deciban {__version__}. {UNIT}"), class_="quiet"),
        data,
        tag("script", Html(script)),
    )
    return _document(title, body, script, connect=not data and not sections)


def _document(title: str, body: Html, script: str, *, connect: bool = True) -> tuple[str, str]:
    assert "</script" not in script, "a script does not end itself"
    css = common_css() + "".join(one.read_text("utf-8") for one in _styles())
    policy = content_policy([script], [css], connect=connect)
    return f"<!doctype html>\n{tag('html', page_head(title, css, policy), body, lang='en')}\n", policy


def _modules(names: Sequence[str]) -> list[Traversable]:
    return [files("deciban.page") / f"{name}.js" for name in names]


def _styles() -> list[Traversable]:
    """Return the CSS files of the page and the playground."""
    return [files("deciban.page") / name for name in ("page.css", "playground.css")]


def _tab(name: str, title: str) -> Html:
    return tag("button", title, type="button", role="tab", id=f"tab-{name}", aria_controls=f"panel-{name}",
               aria_selected="false", tabindex="-1")  # fmt: skip


def _panel(name: str, inside: Html, root: str) -> Html:
    return tag("div", tag("div", inside, id=root), id=f"panel-{name}", role="tabpanel", aria_labelledby=f"tab-{name}",
               tabindex="0", hidden=True)  # fmt: skip
