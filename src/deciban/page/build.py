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
from deciban.report.figures import ReportFigures, report_figures
from deciban.report.form import form_data
from deciban.report.report import UNIT, report_sections
from deciban.util.text_tables import count_noun
from deciban.util.version import __version__
from deciban.web.html import Html, common_css, note, page_head, paragraph, tag
from deciban.web.scripts import assembled, content_policy, data_script, form_modules

# Bytes of a model in a page that browsers still open at once; one that takes more is rounded, or left out.
MAX_BYTES_OF_A_MODEL = 20_000_000

WEATHER_TOLD = "The model is of fourteen days and whether tennis was played; deciban playground MODEL.dcb has yours."


def page_html(model: Fitted | None, *, service: bool, title: str) -> tuple[str, str]:
    """The page and its Content-Security-Policy.

    service: the page asks the service that has it for the model, and `model` is not in it. Else it is one file that
    needs nothing, with `model`, or with one of the weather where there is none.
    """
    if service:
        said = [
            tag("p", id="service-said", class_="quiet"),
            tag("p", id="service-problem", class_="wrong", role="alert"),
        ]
        return _page(title, tag("div", said, id="service"), [], Html(), Html())
    fitted = model if model is not None else fit(Settings(tune=None), weather(), "play")
    figures = report_figures(fitted, title)
    lead = paragraph(WEATHER_TOLD if model is None else _lead(figures), class_="quiet")
    data, problem = _embedded(figures)
    return _page(title, lead, data, problem, report_sections(figures))


def folder_html(title: str) -> tuple[str, str]:
    """The page of a service with a folder of models, which asks for their names, and its Content-Security-Policy."""
    token = [
        tag("label", "This service asks for a token", for_="token"),
        tag("input", type="password", id="token", autocomplete="off", required=True),
        tag("button", "Go on", type="submit"),
    ]
    main = [
        tag("ul", id="models"),
        tag("p", id="service-problem", class_="wrong", role="alert"),
        tag("form", token, class_="card token", id="token-form", hidden=True),
    ]
    script = assembled([files("deciban.web") / "dom.js", *(_modules(("client", "folder")))], "$folder.startFolder();")
    body = tag("body", tag("header", tag("h1", title), class_="top"), tag("main", main), tag("script", Html(script)))
    return _document(title, body, script)


def _lead(figures: ReportFigures) -> str:
    model = figures.data["model"]
    target = f"It predicts {model['target']}: a" if model["target"] else "A"
    sizes = f"{count_noun(len(model['classes']), 'class')} and {count_noun(model['columns'], 'column')}"
    return f"{target} model of {count_noun(model['rows'], 'row')}, {sizes}."


def _embedded(figures: ReportFigures) -> tuple[list[Html], Html]:
    """The model and what its form needs, as data of the page; or why the model cannot be in it."""
    try:
        for small in (False, True):
            model = data_script("model-json", model_as_json(figures.fitted, small))
            if len(model) <= MAX_BYTES_OF_A_MODEL:
                return [model, data_script("form-data", form_data(figures))], Html()
    except UsageError as error:
        return [], note(f"This model cannot be tried without a service: {error}")
    return [], note(f"The model takes {len(model) / 1e6:.0f} MB, too much for a page; deciban serve has no such limit.")


def _page(title: str, lead: Html, data: Sequence[Html], problem: Html, sections: Html) -> tuple[str, str]:
    """The page with what it says of its model, the model as data or why it is not there, and the report's sections."""
    modules = [one for one in files("deciban.page").iterdir() if one.name.endswith(".js") and one.name != "folder.js"]
    start = "$main.start({ mountPlayground: $playground.mountPlayground });"
    ordered = sorted(modules, key=lambda one: one.name)  # the same page on every machine
    script = f"{scorer_source()}\n{assembled([*form_modules(), *ordered], start)}"
    panels = [
        ("try", "Try it", problem, "try"),
        ("playground", "Playground", Html(), "playground"),
        ("model", "Model", sections, "report"),
    ]
    bar = tag("div", (_tab(name, told) for name, told, _, _ in panels), class_="tabs", id="tabs", role="tablist",
              aria_label="Parts of the page")  # fmt: skip
    body = tag(
        "body",
        tag("a", "Skip to the page", class_="skip", href="#main-part"),
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
    """The styles of the page and of the playground."""
    return [files("deciban.page") / name for name in ("page.css", "playground.css")]


def _tab(name: str, told: str) -> Html:
    return tag("button", told, type="button", role="tab", id=f"tab-{name}", aria_controls=f"panel-{name}",
               aria_selected="false", tabindex="-1")  # fmt: skip


def _panel(name: str, inside: Html, root: str) -> Html:
    return tag("div", tag("div", inside, id=root), id=f"panel-{name}", role="tabpanel", aria_labelledby=f"tab-{name}",
               tabindex="0", hidden=True)  # fmt: skip
