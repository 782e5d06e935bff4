"""Build the site: `make docs`, or `sphinx-build -W --keep-going docs build/site`."""

import re
from os.path import relpath
from pathlib import Path
from pydoc import locate
from shutil import rmtree
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.config import Config

from deciban import __version__
from deciban.page.build import render_page

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/deciban/deciban"

project = "deciban"
author = "the deciban developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["build", "**/generated/*.ipynb"]
nitpicky = False
default_role = "py:obj"  # docstrings mark names with single backquotes
suppress_warnings = ["ref.python"]  # of a short name that several classes have, such as classes_
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc prints the types of parameters
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# The gallery: these programs of examples/ are executed, and become pages and notebooks.
APPLICATIONS = "ad_clicks|diagnosis|intrusion|news_sections|recommendation|sentiment|spam_filter"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": rf"^(?!({APPLICATIONS})\.py$)",
    "filename_pattern": "",  # execute all of them
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_signature": False,
    "first_notebook_cell": '%matplotlib inline\nimport sys\n\nsys.argv = ["notebook"]  # no arguments of a program',
}

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "deciban"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the browser
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"  # without JavaScript, and without a server of another host
html_theme_options: dict[str, Any] = {
    "github_url": REPOSITORY,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "show_prev_next": True,
    "use_edit_page_button": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {"index": []}
copyright = f"2026, {author}"

# Files of the repository that are pages of the site; the pages themselves are stubs.
PAGES = {
    "ARCHITECTURE.md": "project/architecture",
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changes",
    "CODE_OF_CONDUCT.md": "project/conduct",
    "SECURITY.md": "project/security",
    **{f"bench/{path.name}": f"project/benchmarks/{path.stem.lower()}" for path in ROOT.glob("bench/*.md")},
}
FILES = {page: name for name, page in PAGES.items()}

# What people type into the search, and the section that answers it in other words.
SYNONYMS = {
    "concepts/calibration": {
        "# Calibration": ["calibration", "calibrated probabilities"],
        "## Intervals of probabilities": ["confidence interval", "prediction interval"],
    },
    "concepts/decisions": {"## The prior": ["prior", "class prior", "prior shift", "label shift"]},
    "concepts/evidence": {"## Importance over many rows": ["importance", "feature importance"]},
    "howto/costs": {
        "# Unbalanced classes and costs": [
            *("imbalanced", "imbalanced classes", "imbalanced data", "class imbalance", "class weight"),
            *("smote", "oversampling", "undersampling", "resampling"),
        ],
        "## State the costs": ["cost", "cost matrix", "loss matrix"],
        "## Decide": ["threshold", "decision threshold"],
        "## Class shares that change": ["change the prior", "set the prior"],
    },
    "howto/drift": {"# Drift": ["data drift", "concept drift", "model drift", "covariate shift", "anomaly"]},
    "howto/evaluate": {
        "# Evaluate a model": [
            *("accuracy", "confusion matrix", "cross validation", "log loss", "brier score"),
            *("roc", "auc", "roc auc"),
        ]
    },
    "howto/diagnose": {"# Diagnose a model, select columns": ["troubleshooting", "faq", "poor accuracy"]},
    "howto/explain": {"# Explain a decision to a customer": ["shap", "explanation"]},
    "howto/forget": {
        "# Forget rows": [
            *(
                "forget rows",
                "forget a row",
                "delete rows",
                "delete a row",
                "delete row",
                "remove rows",
                "remove a row",
            ),
            *("erase", "erasure", "unlearn", "unlearning", "gdpr", "right to be forgotten", "right to erasure"),
        ],
        "## Tune again": ["retrain", "retraining", "retune"],
    },
    "howto/label-errors": {
        "# Label errors": ["mislabeled", "mislabelled", "wrong labels", "noisy labels", "label noise"]
    },
    "howto/missing-values": {"# Missing values": ["missing", "nan", "null"]},
    "howto/monitor": {"## Metrics": ["prometheus"]},
    "howto/online-learning": {"# Learn online": ["incremental learning"]},
    "howto/own-family": {
        "# Add a family of your own (custom distribution)": [
            *("own family", "custom family", "new family"),
            *("own distribution", "custom distribution", "exponential", "exponential distribution"),
        ],
    },
    "howto/prediction-sets": {"# Prediction sets": ["conformal", "conformal prediction", "coverage"]},
    "howto/private-counts": {"# Share counts without sharing rows": ["privacy", "differential privacy"]},
    "howto/probability-tables": {
        "# Read probability tables: P(value | class)": ["p(value | class)", "likelihood of a value"]
    },
    "howto/serve": {
        "## Protect a service with tokens": [
            *("token", "serve with a token", "authentication", "authorization", "api key", "password"),
        ]
    },
    "howto/sql": {"# Score in SQL: PostgreSQL, DuckDB, Spark": ["score in postgresql", "score in sql"]},
    "howto/tables": {
        "## Leave out columns": [
            *("ignore column", "ignore a column", "ignore columns", "drop column", "drop a column", "drop columns"),
            *("exclude column", "leave out a column", "identifier"),
        ],
    },
    "lectures/bayes-classifier": {"## Maximum a posteriori (MAP)": ["map", "maximum a posteriori"]},
    "reference/model-file": {"# Model file": ["save model", "load model", "load", "pickle"]},
    "start/playground": {"# Try it in the browser": ["playground"]},
}


def lead_to_pages(source: str, file: Path, page: Path) -> str:
    """Return the Markdown of a file with links that hold on a page: to pages of the site, or to the repository."""

    def target(match: re.Match[str]) -> str:
        path, _, anchor = match[1].partition("#")
        found = (file.parent / path).resolve()
        if not path or not found.exists() or (file == page and found.is_relative_to(ROOT / "docs")):
            return match[0]
        name = str(found.relative_to(ROOT))
        shown = found
        if name in PAGES:
            shown = ROOT / "docs" / f"{PAGES[name]}.md"
        elif not found.is_relative_to(ROOT / "docs") and found.suffix != ".png":
            return f"]({REPOSITORY}/blob/main/{name})"
        return f"]({relpath(shown, page.parent)}{'#' if anchor else ''}{anchor})"

    return re.sub(r"\]\(((?![a-z]+:)[^)\s]+)\)", target, source)


def list_terms(source: str) -> str:
    """Return the paragraphs "**term**: definition" of the glossary as entries, which the search lists by name."""
    entry = re.compile(r"^\*\*(.+?)\*\*(?: \(([^)]+)\))?: (.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)

    def define(match: re.Match[str]) -> str:
        definition = f"{match[2]}: {match[3]}" if match[2] else match[3]
        return "\n  ".join([match[1], *(definition[0].upper() + definition[1:]).split("\n")])

    first = source.index("\n**") + 1
    return f"{source[:first]}```{{glossary}}\n{entry.sub(define, source[first:])}\n```\n"


def add_synonyms(source: str, sections: dict[str, list[str]]) -> str:
    """Return a page with index entries, which the search lists first, below the given headings."""
    for heading, words in sections.items():
        assert f"{heading}\n" in source, heading
        entries = ", ".join(f"! {word}" for word in words)
        source = source.replace(f"{heading}\n", f"{heading}\n\n```{{index}} {entries}\n```\n", 1)
    return source


def list_api(folder: Path, source: str) -> str:
    """Return the page of the API with the tables of its groups."""
    for group in re.findall(r"^\w+$", source.partition("{toctree}")[2], re.MULTILINE):
        page = (folder / f"{group}.md").read_text(encoding="utf-8")
        title, _, text = page.removeprefix("# ").partition("\n")
        text = re.sub(r"^## (.+)$", r"**\1**", text.replace("   :toctree: generated\n", ""), flags=re.MULTILINE)
        text = re.sub(r"```\{eval-rst\}\n[^`]*autodata[^`]*```\n", "", text)  # described on their own page
        source += f"\n## [{title}]({group}.md)\n{text}"
    return source


def read_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Read a page, or the file that it stands for."""
    page = file = Path(app.env.doc2path(name))
    if name in FILES:
        file = ROOT / FILES[name]
        app.env.note_dependency(str(file))
        source[0] = file.read_text(encoding="utf-8")
    if name == "reference/glossary":
        source[0] = list_terms(source[0])
    if name == "reference/api/index":
        source[0] = list_api(page.parent, source[0])
    source[0] = add_synonyms(source[0], SYNONYMS.get(name, {}))
    source[0] = lead_to_pages(source[0], file, page)
    source[0] = re.sub(r"(\n<BLANKLINE>)?\n+\n```\n", "\n```\n", source[0])  # doctest needs an empty line after output


def remove_stubs(app: Sphinx, config: Config) -> None:
    """Remove the stubs of an earlier build: those of names that are gone would be pages that nothing links to."""
    rmtree(ROOT / "docs" / "reference" / "api" / "generated", ignore_errors=True)


def skip_foreign(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out methods that scikit-learn documents."""
    module = getattr(member, "__module__", None) or getattr(type(member), "__module__", "")
    return True if module.startswith("sklearn.") else None


def link_members(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Link names in the docstrings of a class to its own members: `decide` is then not the function of this name."""
    owner = name if what == "class" else name.rpartition(".")[0]
    described = locate(owner)
    if not isinstance(described, type):
        return
    for k, line in enumerate(lines):
        line = re.sub(r"<\.(\w+)>`", rf"<{owner}.\1>`", line)  # numpydoc writes members of any class
        for match in reversed(list(re.finditer(r"(?<![`:\w])`(\w+)`(?![`_])", line))):
            if hasattr(described, match[1]):
                line = f"{line[: match.start()]}:py:obj:`{match[1]} <{owner}.{match[1]}>`{line[match.end() :]}"
        lines[k] = line


def write_playground(app: Sphinx, error: Exception | None) -> None:
    """Write the interactive page beside the pages that show it in a frame."""
    if error is None and app.builder.format == "html":
        page, _ = render_page(None, service=False, title="deciban: a playground")
        (Path(app.outdir) / "_static" / "playground.html").write_text(page, encoding="utf-8")


def write_math(self: Any, node: nodes.Element) -> None:
    """Write a formula as MathML; a wide one can be scrolled by keyboard."""
    shown = "block" if isinstance(node, nodes.math_block) else "inline"
    tree = str(latex2mathml.tex2mathml(node.astext(), as_block=shown == "block"))
    applied = "<mo>&ApplyFunction;</mo>"  # thin spaces around "log" and the like, except before a parenthesis
    tree = re.sub(rf"{applied}(?=\s*<m(?!o))", '<mo rspace="0.17em">&ApplyFunction;</mo>', tree)
    tree = re.sub(
        r"(</(?:mi|mn|msub|msup)>\s*)(?=<mi>[a-z]+</mi>\s*<mo[^>]*>&App)", r'\1<mspace width="0.17em"/>', tree
    )
    self.body.append(f'<div class="math" tabindex="0">{tree}</div>' if shown == "block" else tree)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("config-inited", remove_stubs, priority=100)
    app.connect("source-read", read_page)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", link_members)
    app.connect("build-finished", write_playground)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
