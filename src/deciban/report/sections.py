"""The sections of a report, from its figures."""

from typing import Any

import numpy as np

from deciban.explain.terms import signed
from deciban.report.column_cards import column_card, folded_card
from deciban.report.figures import OPEN_COLUMNS, ReportFigures
from deciban.report.html import Html, folded, html_table, note, paragraph, tag, tiles
from deciban.report.svg import dot, reliability, waterfall
from deciban.util.text_tables import amount, class_name, counted, digits, listed
from deciban.web.palette import class_colours

# Classes, and findings of the diagnosis, that have a line in a table.
MOST_CLASSES_TABLED = 20
MOST_FINDINGS_TABLED = 12

# What is said of a model that its columns do not help.
NO_BETTER = "In log-loss the model is no better than this baseline, which knows nothing of the columns."


def model_section(data: dict[str, Any]) -> list[Html]:
    """What the model is."""
    model = data["model"]
    figures = [
        ("rows learned", amount(model["rows"])),
        ("classes", amount(len(model["classes"]))),
        ("columns", amount(model["columns"])),
        ("predicts", model["target"] or "labels given apart"),
    ]
    lines = [(one["class"], amount(one["rows"]), digits(one["prior"])) for one in model["classes"]]
    found = [tiles(figures), paragraph(model["tuning"])]
    if model["stale"]:
        found.append(note("The counts have changed since the model was tuned: its weights are out of date."))
    found.append(html_table(("class", "rows", "prior"), lines[:MOST_CLASSES_TABLED], "Classes"))
    free = model["parameters"]
    counts = [
        ("every column by itself (naive)", _count(free["naive"]), _count(free["naive_per_class"])),
        ("this model", _count(free["model"]), ""),
        ("full joint distribution", _count(free["full"]), _count(free["full_per_class"])),
    ]
    found.append(html_table(("free parameters", "in all", "per class"), counts, "How many numbers are learned"))
    found.append(paragraph(f"Combinations of the values of discrete columns: {_count(free['combinations'])}."))
    more = len(lines) - MOST_CLASSES_TABLED
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
        "rows": amount(quality["rows"]),
        "accuracy": _figure(quality["accuracy"]),
        "log-loss, nats": _figure(quality["log_loss"]),
        "area under ROC": _figure(quality["auc"]),
        "calibration error": _figure(quality["calibration_error"]),
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
    if quality["rows_of_unknown_classes"]:
        rows = counted(quality["rows_of_unknown_classes"], "row")
        found.append(note(f"Of a class that was not learned, and so always wrong: {rows}."))
    if absent := quality.get("absent"):
        found.append(note(f"Not in the table that was given, and taken as missing: {listed(absent)}."))
    return found


def _unknown_quality(quality: dict[str, Any]) -> list[Html]:
    found = [note(quality["cannot_know"])]
    if (tuning := quality.get("tuning")) is not None:
        left_out = f"When the model was tuned, {amount(tuning['rows'])} of its rows were each left out in turn"
        figures = f"accuracy {tuning['accuracy']:.4f}, log-loss {tuning['log_loss']:.4f}"
        found.append(paragraph(f"{left_out}: {figures}."))
    return found


def _calibration(bins: list[dict[str, Any]]) -> list[Html]:
    claimed, right, rows = (np.array([one[key] for one in bins], dtype=float) for key in ("claimed", "right", "rows"))
    lines = [(f"{one['claimed']:.3f}", f"{one['right']:.3f}", amount(one["rows"])) for one in bins]
    told = (
        "Each point is a group of rows: how probable their predicted class was said to be (across), and how often it "
        "was right (up). Points on the line can be believed."
    )
    return [
        tag("h3", "Claims and facts"),
        paragraph(told),
        reliability(claimed, right, rows, "how often the predicted class was right, by what was claimed"),
        folded("as a table", html_table(("claimed", "right", "rows"), lines, "Claims and facts")),
    ]


def _confusions(quality: dict[str, Any]) -> list[Html]:
    names = quality["classes"]
    lines = [
        (one["class"], amount(one["rows"]), *(_figure(one[key]) for key in ("precision", "recall", "f1")))
        for one in quality["per_class"][:MOST_CLASSES_TABLED]
    ]
    each = html_table(("class", "rows", "precision", "recall", "F1"), lines, "Each class")
    if len(names) > MOST_CLASSES_TABLED:
        return [each]
    rows = [(name, *map(amount, row)) for name, row in zip(names, quality["confusion"], strict=True)]
    return [html_table(("truth / predicted", *names), rows, "Confusions"), each]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def columns_section(figures: ReportFigures) -> list[Html]:
    """What each column says, the most important first; those of less importance are folded."""
    names = [class_name(label) for label in figures.fitted.classes]
    colours = class_colours(names)
    intro = (
        "A picture shows what the values of a column say for a class against all others, if no other column is known; "
        "below it, how the column is distributed within each class."
    )
    key = [tag("li", dot(colour), name) for name, colour in zip(names[:MOST_CLASSES_TABLED], colours, strict=False)]
    cards = [
        (column_card if rank < OPEN_COLUMNS else folded_card)(one, figure, names, colours)
        for rank, (one, figure) in enumerate(zip(figures.data["columns"], figures.columns, strict=True))
    ]
    found = [
        paragraph(_matters(figures.data["importance"]), " ", intro),
        tag("ul", key, class_="key", aria_label="Colours of the classes"),
        tag("div", cards[:OPEN_COLUMNS], class_="cards"),
    ]
    if rest := cards[OPEN_COLUMNS:]:
        found.append(folded(f"{len(rest)} more columns", tag("div", rest, class_="cards")))
    left = figures.data["model"]["columns"] - len(cards)
    return [*found, paragraph(f"{counted(left, 'column')} of less importance are not shown.")] if left else found


def _matters(importance: dict[str, Any]) -> str:
    """Which rows tell how much columns matter."""
    if not importance["rows"]:
        return "How much each column matters is not known."
    rows = f"{amount(importance['rows'])} rows {importance['source']}"
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
            for one in diagnosis["misfits"][:MOST_FINDINGS_TABLED]
        ]
        head = ("column", "family", "Kolmogorov distance")
        found.append(html_table(head, lines, "Columns that are not distributed as their family says"))
    if few := diagnosis.get("small_classes"):
        classes = ", ".join(f"{one['class']} ({counted(one['rows'], 'row')})" for one in few[:MOST_FINDINGS_TABLED])
        found.append(note(f"Few rows: {classes}. Remedy: more rows, stronger smoothing, Pooled() variances."))
    return [*found, tag("h3", "What tuning has done"), tag("ul", (tag("li", line) for line in diagnosis["done"]))]


def _dependences(diagnosis: dict[str, Any]) -> list[Html]:
    tested = f"{amount(diagnosis['pairs_tested'])} pairs tested"
    if not diagnosis["dependences"]:
        return [paragraph(f"No dependence between columns within the classes was found ({tested}).")]
    lines = [
        (" and ".join(one["columns"]), f"{one['bits']:.3f}", f"{one['cost']:.3f}", one["kind"])
        for one in diagnosis["dependences"][:MOST_FINDINGS_TABLED]
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
        limit = digits(threshold["posterior"])
        found.append(paragraph(f"Decide for {threshold['class']} when its probability is above {limit}."))
    if "mean_cost" not in decisions:
        return [*found, note("What decisions cost on new rows is not known without such rows.")]
    cost, least = decisions["mean_cost"], decisions["baseline_cost"]
    said = (
        f"On {data['quality']['source']}, the decisions of least expected loss cost {cost:.4f} per row; "
        f"always deciding {decisions['baseline_decision']}, the cheapest single decision, costs {least:.4f}."
    )
    found.append(paragraph(said))
    if len(decisions["classes"]) > MOST_CLASSES_TABLED:
        return found
    pairs = zip(decisions["classes"], decisions["decided"], strict=True)
    decided = [(name, *map(amount, row)) for name, row in pairs]
    return [*found, html_table(("truth / decision", *decisions["decisions"]), decided, "Decisions, in rows")]


def rows_section(data: dict[str, Any]) -> list[Html]:
    """A few rows with the evidence for what is predicted."""
    if not data["rows"]:
        return [paragraph("No rows are shown.")]
    learned = "These rows were learned, and are explained by the model that knows them." if data["rows_learned"] else ""
    return [paragraph(learned), tag("div", (_row_card(one) for one in data["rows"]), class_="cards")]


def _row_card(one: dict[str, Any]) -> Html:
    chance = digits(one["posterior"][one["predicted"]])
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
