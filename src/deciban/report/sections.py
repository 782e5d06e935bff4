"""The sections of a report as HTML, from its metrics; each column is a card with a picture and the table behind it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.explain.calculation import signed
from deciban.explain.column_values import ColumnValues
from deciban.report.figures import MANY_LINES, MAX_CATEGORIES_SHOWN, OPEN_COLUMNS, ColumnFigures, ReportFigures
from deciban.report.svg import bar_chart, dot, line_chart, reliability, waterfall
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import count_noun, format_amount, format_class, format_digits, list_names
from deciban.web.html import Html, folded, html_table, note, paragraph, tag, tiles
from deciban.web.palette import class_colors

# Classes, and findings of the diagnosis, that have a line in a table.
MAX_CLASSES_TABLED = 20
MAX_FINDINGS_TABLED = 12

# What is said of a model that its columns do not help.
NO_BETTER = "In log-loss the model is no better than this baseline, which knows nothing of the columns."


def model_section(data: dict[str, Any]) -> list[Html]:
    """What the model is."""
    model = data["model"]
    figures = [
        ("rows learned", format_amount(model["rows"])),
        ("classes", format_amount(len(model["classes"]))),
        ("columns", format_amount(model["columns"])),
        ("predicts", model["target"] or "labels given apart"),
    ]
    lines = [(one["class"], format_amount(one["rows"]), format_digits(one["prior"])) for one in model["classes"]]
    found = [tiles(figures), paragraph(model["tuning"])]
    if model["stale"]:
        found.append(note("The counts have changed since the model was tuned: its weights are out of date."))
    found.append(html_table(("class", "rows", "prior"), lines[:MAX_CLASSES_TABLED], "Classes"))
    free = model["parameters"]
    counts = [
        ("every column by itself (naive)", _count(free["naive"]), _count(free["naive_per_class"])),
        ("this model", _count(free["model"]), ""),
        ("full joint distribution", _count(free["full"]), _count(free["full_per_class"])),
    ]
    found.append(html_table(("free parameters", "in all", "per class"), counts, "How many numbers are learned"))
    found.append(paragraph(f"Combinations of the values of discrete columns: {_count(free['combinations'])}."))
    more = len(lines) - MAX_CLASSES_TABLED
    return [*found, paragraph(f"… and {more} more classes.")] if more > 0 else found


def _count(number: int | str) -> str:
    """A number of parameters, which is text where it is very large."""
    return number if isinstance(number, str) else f"{number:,}"


def quality_section(data: dict[str, Any]) -> list[Html]:
    """How good and how calibrated the model is, or what is not known."""
    quality = data["quality"]
    if quality["source"] is None:
        return _unknown_quality(quality)
    baseline = quality["baseline"]
    figures = {
        "rows": format_amount(quality["rows"]),
        "accuracy": _figure(quality["accuracy"]),
        "log-loss, nats": _figure(quality["log_loss"]),
        "ROC AUC": _figure(quality["roc_auc"]),
        "Brier score": _figure(quality["brier_score"]),
        "calibration error": _figure(quality["expected_calibration_error"]),
    }
    return [
        paragraph(f"On {quality['source']}."),
        tiles((name, value) for name, value in figures.items() if value),
        paragraph(
            f"Always {baseline['class']}: accuracy {baseline['accuracy']:.4f}, log-loss {baseline['log_loss']:.4f}."
        ),
        *([] if quality["beats_baseline"] else [note(NO_BETTER)]),
        *_not_there(quality),
        *_calibration(quality["calibration"]),
        *_confusions(quality),
    ]


def _not_there(quality: dict[str, Any]) -> list[Html]:
    """What the rows that were given lack."""
    found = []
    if quality["unknown_class_rows"]:
        rows = count_noun(quality["unknown_class_rows"], "row")
        found.append(note(f"Of a class that was not learned, and so always wrong: {rows}."))
    if absent := quality.get("absent"):
        found.append(note(f"Not in the table that was given, and taken as missing: {list_names(absent)}."))
    return found


def _unknown_quality(quality: dict[str, Any]) -> list[Html]:
    found = [note(quality["cannot_know"])]
    if (tuning := quality.get("tuning")) is not None:
        left_out = f"When the model was tuned, {format_amount(tuning['rows'])} of its rows were each left out in turn"
        figures = f"accuracy {tuning['accuracy']:.4f}, log-loss {tuning['log_loss']:.4f}"
        found.append(paragraph(f"{left_out}: {figures}."))
    return found


def _calibration(bins: list[dict[str, Any]]) -> list[Html]:
    keys = ("predicted", "observed", "rows")
    predicted, observed, rows = (np.array([one[key] for one in bins], dtype=float) for key in keys)
    lines = [(f"{one['predicted']:.3f}", f"{one['observed']:.3f}", format_amount(one["rows"])) for one in bins]
    told = (
        "Each point is a group of rows: how probable their predicted class was said to be (across), and how often it "
        "was right (up). Points on the line can be believed."
    )
    return [
        tag("h3", "Calibration"),
        paragraph(told),
        reliability(predicted, observed, rows, "how often the predicted class was right, by what was claimed"),
        folded("as a table", html_table(keys, lines, "Calibration")),
    ]


def _confusions(quality: dict[str, Any]) -> list[Html]:
    names = quality["classes"]
    lines = [
        (one["class"], format_amount(one["rows"]), *(_figure(one[key]) for key in ("precision", "recall", "f1")))
        for one in quality["per_class"][:MAX_CLASSES_TABLED]
    ]
    each = html_table(("class", "rows", "precision", "recall", "F1"), lines, "Each class")
    if len(names) > MAX_CLASSES_TABLED:
        return [each]
    rows = [(name, *map(format_amount, row)) for name, row in zip(names, quality["confusion"], strict=True)]
    return [html_table(("truth / predicted", *names), rows, "Confusions"), each]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def columns_section(figures: ReportFigures) -> list[Html]:
    """What each column says, the most important first; those of less importance are folded."""
    names = [format_class(label) for label in figures.fitted.classes]
    colors = class_colors(names)
    intro = (
        "A picture shows what the values of a column say for a class against all others, if no other column is known; "
        "below it, how the column is distributed within each class."
    )
    key = [tag("li", dot(color), name) for name, color in zip(names[:MAX_CLASSES_TABLED], colors, strict=False)]
    cards = [
        (column_card if rank < OPEN_COLUMNS else folded_card)(one, figure, names, colors)
        for rank, (one, figure) in enumerate(zip(figures.data["columns"], figures.columns, strict=True))
    ]
    found = [
        paragraph(_matters(figures.data["importance"]), " ", intro),
        tag("ul", key, class_="key", aria_label="Colors of the classes"),
        tag("div", cards[:OPEN_COLUMNS], class_="cards"),
    ]
    if rest := cards[OPEN_COLUMNS:]:
        found.append(folded(f"{len(rest)} more columns", tag("div", rest, class_="cards")))
    left = figures.data["model"]["columns"] - len(cards)
    return [*found, paragraph(f"{count_noun(left, 'column')} of less importance are not shown.")] if left else found


def _matters(importance: dict[str, Any]) -> str:
    """Which rows tell how much columns matter."""
    if not importance["rows"]:
        return "How much each column matters is not known."
    rows = f"{format_amount(importance['rows'])} rows {importance['source']}"
    return f"The most important first: on average over {rows}, the size of what a column says and what it adds."


def diagnosis_section(data: dict[str, Any]) -> list[Html]:
    """Which assumptions of plain Bayes fail, and what tuning has done about it."""
    diagnosis = data["diagnosis"]
    found = []
    if "cannot_know" in diagnosis:
        found.append(note(diagnosis["cannot_know"]))
    else:
        found += _dependences(diagnosis)
    if diagnosis["misfits"]:
        lines = [
            (f"{one['column']} in {one['class']}", one["family"], f"{one['distance']:.3f}")
            for one in diagnosis["misfits"][:MAX_FINDINGS_TABLED]
        ]
        head = ("column", "family", "Kolmogorov distance")
        found.append(html_table(head, lines, "Columns that are not distributed as their family says"))
    if few := diagnosis.get("small_classes"):
        classes = ", ".join(f"{one['class']} ({count_noun(one['rows'], 'row')})" for one in few[:MAX_FINDINGS_TABLED])
        found.append(note(f"Few rows: {classes}. Remedy: more rows, stronger smoothing, Pooled() variances."))
    return [*found, tag("h3", "What tuning has done"), tag("ul", (tag("li", line) for line in diagnosis["done"]))]


def _dependences(diagnosis: dict[str, Any]) -> list[Html]:
    tested = f"{format_amount(diagnosis['pairs_tested'])} pairs tested"
    if not diagnosis["dependences"]:
        return [paragraph(f"No dependence between columns within the classes was found ({tested}).")]
    lines = [
        (" and ".join(one["columns"]), f"{one['bits']:.3f}", f"{one['cost']:.3f}", one["kind"])
        for one in diagnosis["dependences"][:MAX_FINDINGS_TABLED]
    ]
    caption = f"Columns that depend on each other within the classes ({tested})"
    table = html_table(("columns", "mutual bits", "cost, bits per row", "kind"), lines, caption)
    return [table, *(paragraph(f"Remedy: {remedy}.") for remedy in diagnosis["remedies"])]


def decisions_section(data: dict[str, Any]) -> list[Html]:
    """The losses that were given and what decisions cost under them."""
    decisions = data["decisions"]
    if decisions["loss"] is None:
        return [paragraph("No losses were given: the most probable class is decided for, the fewest mistakes.")]
    costs = zip(decisions["decisions"], decisions["loss"], strict=True)
    rows = [(name, *(f"{cost:g}" for cost in line)) for name, line in costs]
    found = [html_table(("decision / truth", *decisions["classes"]), rows, "What each decision costs")]
    if (threshold := decisions.get("threshold")) is not None:
        limit = format_digits(threshold["posterior"])
        found.append(paragraph(f"Decide for {threshold['class']} when its probability is above {limit}."))
    if "mean_cost" not in decisions:
        return [*found, note("What decisions cost on new rows is not known without such rows.")]
    cost, least = decisions["mean_cost"], decisions["baseline_cost"]
    said = (
        f"On {data['quality']['source']}, the decisions of least expected loss cost {cost:.4f} per row; "
        f"always deciding {decisions['baseline_decision']}, the cheapest single decision, costs {least:.4f}."
    )
    found.append(paragraph(said))
    if len(decisions["classes"]) > MAX_CLASSES_TABLED:
        return found
    pairs = zip(decisions["classes"], decisions["decision_counts"], strict=True)
    decided = [(name, *map(format_amount, row)) for name, row in pairs]
    return [*found, html_table(("truth / decision", *decisions["decisions"]), decided, "Decisions, in rows")]


def rows_section(data: dict[str, Any]) -> list[Html]:
    """A few rows with the evidence for what is predicted."""
    if not data["rows"]:
        return [paragraph("No rows are shown.")]
    learned = "These rows were learned, and are explained by the model that knows them." if data["rows_learned"] else ""
    return [paragraph(learned), tag("div", (_row_card(one) for one in data["rows"]), class_="cards")]


def _row_card(one: dict[str, Any]) -> Html:
    chance = format_digits(one["posterior"][one["predicted"]])
    inside = [
        tag("h3", one["why"]),
        paragraph(f"predicted {one['predicted']} with probability {chance}; true: {one['truth']}"),
    ]
    if one["terms"]:
        title = f"evidence for {one['predicted']} against {one['against']}, in decibans"
        labels, values = ([term[key] for term in one["terms"]] for key in ("label", "decibans"))
        told = "; ".join(f"{name} {signed(value)}" for name, value in zip(labels, values, strict=True))
        inside += [paragraph(title), waterfall(labels, values, f"{title}: {told}")]
    for column, words in one["words"].items():
        inside.append(paragraph(f"{column}: " + ", ".join(f"{word} {signed(decibans)}" for word, decibans in words)))
    return tag("div", inside, class_="card")


# --- the card of a column: a picture, how much it matters, and the table behind

# Evidence beyond this is cut off in a picture: odds of a million to 1. So is a density that is so many times as high as
# nearly all others, which it would flatten.
MAX_EVIDENCE_DRAWN = 60.0
MAX_PEAK_DRAWN = 5.0

# Lines of the table behind a picture, and classes that have a column there or are named in a title.
LINES_BEHIND = 13
CLASSES_BEHIND = 6
CLASSES_NAMED = 4


def column_card(data: dict[str, Any], figures: ColumnFigures, names: Sequence[str], colors: Sequence[str]) -> Html:
    """A column whose picture is open."""
    inside = [_facts(data), _words(figures)]
    if figures.values is not None:
        inside += [
            _evidence_picture(figures, figures.values, names, colors),
            _density_picture(figures, figures.values, names, colors),
            folded("as a table", _table_behind(figures, figures.values, names)),
        ]
    return tag("article", tag("h3", figures.name), inside, class_="card")


def folded_card(data: dict[str, Any], figures: ColumnFigures, names: Sequence[str], colors: Sequence[str]) -> Html:
    """A column of less importance: a small picture, of few classes."""
    picture = Html()
    if figures.values is not None and len(names) <= MANY_LINES:
        picture = _evidence_picture(figures, figures.values, names, colors)
    return tag("article", tag("h3", figures.name), _facts(data, short=True), picture, class_="card")


def _facts(data: dict[str, Any], short: bool = False) -> Html:
    """How much the column matters, how it is modeled and how it weighs."""
    if data["note"]:
        return paragraph(data["note"])
    known = ""
    if "decibans" in data:
        size = f"{data['decibans']:.1f} decibans"
        if np.isinf(data["decibans"]):
            own = np.isinf([data["least"], data["most"]]).any()
            why = "a value that a class never has" if own else "a value that only the left-out row of a class has"
            size = f"∞ decibans ({why} rules the class out)"
        known = f"on average {size}, {data['bits']:+.3f} bits"
    reach = f"from {signed(data['least'])} to {signed(data['most'])} decibans" if "values" in data else ""
    weights = "; ".join(
        f"{_together(one['columns'])} as {one['family'].split('(')[0]}, weight {one['weight']:.2g}"
        for one in data["blocks"]
    )
    return tag(
        "div",
        paragraph("; ".join(filter(None, (known, reach))), class_="quiet"),
        [] if short else paragraph(weights, class_="quiet"),
    )


def _together(columns: int) -> str:
    return "alone" if columns == 1 else f"{columns} columns together"


def _evidence_picture(
    figures: ColumnFigures, values: ColumnValues, names: Sequence[str], colors: Sequence[str]
) -> Html:
    """Of two classes the evidence for the second, which says all."""
    shown = slice(1, 2) if len(names) == 2 else slice(None)
    evidence = figures.evidence[:, shown]
    title = f"evidence of {figures.name} for {', '.join(names[shown][:CLASSES_NAMED])}, in decibans"
    if values.kind == "categories":
        places = _telling(evidence)
        told = [f"{values.names[k]} {signed(evidence[k, 0])}" for k in places] if evidence.shape[1] == 1 else []
        return bar_chart([values.names[k] for k in places], evidence[places], colors[shown], "; ".join([title, *told]))
    ends = _ends(values)
    title = f"{title}, from {ends[0]} to {ends[1]}"
    if np.abs(evidence[np.isfinite(evidence)]).max(initial=0.0) > MAX_EVIDENCE_DRAWN:
        title += f", cut off at {MAX_EVIDENCE_DRAWN:.0f}"
    if np.isinf(evidence).any():
        title += ", infinite where a triangle is marked ∞"
    return line_chart(values.positions, evidence, colors[shown], _limits(evidence), ends, title)


def _ends(values: ColumnValues) -> tuple[str, str]:
    """The first and the last value, in few digits."""
    if values.dates:
        return values.names[0], values.names[-1]
    return f"{values.positions[0]:.4g}", f"{values.positions[-1]:.4g}"


def _limits(evidence: Floats) -> tuple[float, float]:
    """From where to where a picture of evidence reaches."""
    finite = evidence[np.isfinite(evidence)]
    low, high = finite.min(initial=-1.0), finite.max(initial=1.0)
    return max(float(low), -MAX_EVIDENCE_DRAWN), min(float(high), MAX_EVIDENCE_DRAWN)


def _density_picture(figures: ColumnFigures, values: ColumnValues, names: Sequence[str], colors: Sequence[str]) -> Html:
    """How numbers are distributed within each class; nothing for categories, whose evidence tells as much."""
    if values.kind == "categories":
        return Html()
    density = np.where(np.isfinite(figures.density), figures.density, 0.0)
    title = f"how {figures.name} is distributed in {', '.join(names[:CLASSES_NAMED])}"
    highest = density.max(axis=1)
    top = max(float(highest.max()), 1e-300)
    usual = MAX_PEAK_DRAWN * _height_of_most(values.positions, highest)
    if 0.0 < usual < top:
        title += f", cut off at {usual:.3g} below a peak of {top:.3g}"
        top = usual
    return line_chart(values.positions, density, colors, (0.0, top), _ends(values), title)


def _height_of_most(x: Floats, height: Floats) -> float:
    """The height that a curve has over less than a twentieth of its reach."""
    order = np.argsort(-height, kind="stable")
    along = np.cumsum(np.gradient(x)[order]) if x.size > 1 else np.ones(1)
    return float(height[order[np.searchsorted(along, 0.05 * along[-1])]])


def _telling(evidence: Floats) -> Integers:
    """The places of the categories that say most, in their order."""
    size = np.abs(np.nan_to_num(evidence, posinf=1e300, neginf=-1e300)).max(axis=1)
    return np.sort(np.argsort(-size, kind="stable")[:MAX_CATEGORIES_SHOWN])


def _table_behind(figures: ColumnFigures, values: ColumnValues, names: Sequence[str]) -> Html:
    places = _telling(figures.evidence)
    if values.kind != "categories":
        places = np.unique(np.linspace(0, len(values.cells) - 1, LINES_BEHIND).astype(np.int64))
    lines = [
        (values.names[k], *(signed(said, 2) for said in figures.evidence[k, :CLASSES_BEHIND].tolist())) for k in places
    ]
    caption = f"what {figures.name} says for each class, in decibans"
    return html_table(("value", *names[:CLASSES_BEHIND]), lines, caption)


def _words(figures: ColumnFigures) -> list[Html]:
    """The words of a text that are typical of each class."""
    return [
        paragraph(tag("strong", label), ": ", ", ".join(f"{word} {signed(decibans)}" for word, decibans in words))
        for label, words in figures.words
    ]
