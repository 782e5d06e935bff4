"""Sections of a report as HTML; each column is a card with a chart and its table."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.evaluation.comparison import format_p
from deciban.explain.calculation import format_decibans
from deciban.explain.column_values import ColumnValues, find_density_limit
from deciban.report.data import MANY_LINES, MAX_CATEGORIES_SHOWN, OPEN_COLUMNS, ColumnData, ReportData
from deciban.report.svg import bar_chart, calibration_chart, dot, line_chart, ranking_chart, waterfall
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import (
    count_noun,
    format_amount,
    format_class,
    format_probability,
    format_three,
    list_names,
)
from deciban.web.html import Html, details, html_table, note, paragraph, tag, tiles
from deciban.web.palette import class_colors

# Classes in a table; more are summed up.
MAX_CLASSES_TABLED = 20

# Columns in the chart of their importance.
MAX_COLUMNS_RANKED = 20

# Findings of the diagnosis in a table, the strongest first.
MAX_FINDINGS_TABLED = 12

# Warning about a model whose columns do not predict the class.
NO_BETTER = "The model is no better in log-loss than this baseline, which ignores the columns."


# Note on leave-one-out metrics of a tuned model.
OPTIMISTIC = (
    "Weights and corrections were fitted on these rows too, so these numbers are optimistic. "
    "The cross-validated numbers under Model are less so; deciban evaluate TABLE --target COLUMN gives unbiased ones."
)


def model_section(data: dict[str, Any]) -> list[Html]:
    """Render the description of the model."""
    model = data["model"]
    sizes = [
        ("training rows", format_amount(model["rows"])),
        ("classes", format_amount(len(model["classes"]))),
        ("columns", format_amount(model["columns"])),
        ("target", model["target"] or "separate labels"),
    ]
    lines = [(one["class"], format_amount(one["rows"]), format_three(one["prior"])) for one in model["classes"]]
    found = [tiles(sizes), paragraph(_sentence(model["tuning"]))]
    if model["stale"]:
        found.append(note("The counts have changed since tuning; the weights are out of date."))
    found.append(html_table(("class", "rows", "prior"), lines[:MAX_CLASSES_TABLED], "Classes"))
    free = model["parameters"]
    counts = [
        ("naive Bayes", _count(free["naive"]), _count(free["naive_per_class"])),
        ("fitted model", _count(free["model"]), ""),
        (free["full_name"], _count(free["full"]), _count(free["full_per_class"])),
    ]
    found.append(html_table(("free parameters", "total", "per class"), counts, "Number of parameters"))
    if free["combinations"] not in (1, "1"):
        found.append(paragraph(f"Possible combinations of the discrete columns: {_count(free['combinations'])}."))
    more = len(lines) - MAX_CLASSES_TABLED
    return [*found, paragraph(f"… and {more} more classes.")] if more > 0 else found


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _count(number: int | str) -> str:
    """Format a number of parameters; a very large one is already text."""
    return number if isinstance(number, str) else f"{number:,}"


def quality_section(data: dict[str, Any]) -> list[Html]:
    """Render accuracy, calibration and confusions, or why they are missing."""
    quality = data["quality"]
    if quality["source"] is None:
        return _unknown_quality(quality)
    baseline = quality["baseline"]
    metrics = {
        "rows": format_amount(quality["rows"]),
        "accuracy": _metric(quality["accuracy"]),
        "log-loss, nats": _metric(quality["log_loss"]),
        "ROC AUC": _metric(quality["roc_auc"]),
        "Brier score": _metric(quality["brier_score"]),
        "calibration error": _metric(quality["expected_calibration_error"]),
        "ranked probability score": _metric(quality.get("ranked_probability_score")),
        "mean absolute distance": _metric(quality.get("mean_absolute_distance")),
    }
    return [
        paragraph(f"Measured on {quality['source']}."),
        *([note(OPTIMISTIC)] if quality.get("optimistic") else []),
        tiles((name, value) for name, value in metrics.items() if value),
        paragraph(
            f"Baseline without the columns: accuracy {format_three(baseline['accuracy'])} (always "
            f"{baseline['class']}), log-loss {format_three(baseline['log_loss'])} (class frequencies)."
        ),
        *([] if quality["beats_baseline"] else [note(NO_BETTER)]),
        *_gaps(quality),
        *_calibration(quality["calibration"]),
        *_confusions(quality),
    ]


def _gaps(quality: dict[str, Any]) -> list[Html]:
    """Render notes on unknown classes and missing columns."""
    found = []
    if quality["unknown_class_rows"]:
        rows = count_noun(quality["unknown_class_rows"], "row")
        found.append(note(f"{rows} of a class that is not in the model count as errors."))
    if absent := quality.get("absent"):
        found.append(note(f"Columns not in the given table, treated as missing: {list_names(absent)}."))
    return found


def _unknown_quality(quality: dict[str, Any]) -> list[Html]:
    found = [note(quality["cannot_know"])]
    if (tuning := quality.get("tuning")) is not None:
        left_out = f"Measured during tuning on {format_amount(tuning['rows'])} left-out training rows"
        metrics = f"accuracy {format_three(tuning['accuracy'])}, log-loss {format_three(tuning['log_loss'])}"
        found.append(paragraph(f"{left_out}: {metrics}."))
    return found


def _calibration(bins: list[dict[str, Any]]) -> list[Html]:
    keys = ("predicted", "observed", "rows")
    predicted, observed, rows = (np.array([one[key] for one in bins], dtype=float) for key in keys)
    lines = [(f"{one['predicted']:.3f}", f"{one['observed']:.3f}", format_amount(one["rows"])) for one in bins]
    intro = (
        "Each point is a group of rows. Horizontal: the mean predicted probability. Vertical: how often the predicted "
        "class was right, with a 95% interval. For points on the diagonal, the two agree. Hollow points have few "
        "rows."
    )
    return [
        tag("h3", "Calibration"),
        paragraph(intro),
        calibration_chart(predicted, observed, rows, "observed frequency by predicted probability"),
        details("as a table", html_table(keys, lines, "Calibration")),
    ]


def _confusions(quality: dict[str, Any]) -> list[Html]:
    names = quality["classes"]
    lines = [
        (one["class"], format_amount(one["rows"]), *(_metric(one[key]) for key in ("precision", "recall", "f1")))
        for one in quality["per_class"][:MAX_CLASSES_TABLED]
    ]
    each = html_table(("class", "rows", "precision", "recall", "F1"), lines, "Per class")
    if len(names) > MAX_CLASSES_TABLED:
        return [each]
    rows = [(name, *map(format_amount, row)) for name, row in zip(names, quality["confusion"], strict=True)]
    return [html_table(("truth / predicted", *names), rows, "Confusion matrix"), each]


def _metric(value: float | None) -> str:
    return "" if value is None else format_three(value)


def drift_section(drift: dict[str, Any]) -> list[Html]:
    """Render how the given rows differ from those learned."""
    drifted = [one for one in drift["columns"] if one["drifted"]]
    found = f"{len(drifted)} of {count_noun(len(drift['columns']), 'column')}"
    intro = (
        f"{count_noun(drift['rows'], 'given row')}, compared with {count_noun(drift['rows_learned'], 'row')} learned: "
        f"the distribution of {found} has changed. If nothing has changed, a column or the class shares are marked "
        f"with a probability of {drift['level']:.0%}."
    )
    order = sorted(drift["columns"], key=lambda one: (2.0 if one["p_value"] is None else one["p_value"], -_size(one)))
    lines = [
        (
            f"{one['column']} *" if one["drifted"] else one["column"],
            *("" if one[key] is None else f"{one[key]:.4f}" for key in ("divergence", "chance")),
            format_p(one["p_value"]),
            one["change"],
        )
        for one in order[:MAX_COLUMNS_RANKED]
    ]
    shares = [(one["class"], *(format_three(one[key]) for key in ("learned", "now"))) for one in drift["classes"]]
    p = format_p(drift["classes_p_value"])
    caption = f"Class shares; p {p}" if p else "Class shares"
    head = ("column", "divergence", "by chance", "p", "largest change")
    accuracy = f"Expected accuracy from the posteriors alone: {format_three(drift['accuracy'])}"
    if drift["cost"] is not None:
        accuracy += f"; expected cost per row: {format_three(drift['cost'])}"
    rest = len(order) - len(lines)
    return [
        paragraph(intro),
        html_table(head, lines, "Columns; * marks a change", [4]),
        *([paragraph(f"… and {count_noun(rest, 'column')} with less change.")] if rest > 0 else []),
        html_table(("class", "learned", "now"), shares[:MAX_CLASSES_TABLED], caption),
        *([] if drift["outliers"] is None else [paragraph(f"Outliers: {drift['outliers']:.1%} of the rows.")]),
        paragraph(f"{accuracy}."),
    ]


def _size(column: dict[str, Any]) -> float:
    return float(column["divergence"] or 0.0)


def columns_section(contents: ReportData) -> list[Html]:
    """Render a card for each column, the most important first; less important ones are folded."""
    names = [format_class(label) for label in contents.fitted.classes]
    colors = class_colors(names)
    intro = (
        "The upper chart shows the evidence of each value if all other columns are missing. The lower chart shows the "
        "distribution of the column within each class."
    )
    if contents.fitted.is_tuned:
        intro += " On its own, a column is scaled up, so its evidence can exceed that in a complete row."
    key = [tag("li", dot(color), name) for name, color in zip(names[:MAX_CLASSES_TABLED], colors, strict=False)]
    cards = [
        (column_card if rank < OPEN_COLUMNS else fold_card)(facts, column, names, colors)
        for rank, (facts, column) in enumerate(zip(contents.data["columns"], contents.columns, strict=True))
    ]
    found = [
        paragraph(_matters(contents.data["importance"])),
        _ranking(contents.data["columns"]),
        paragraph(intro),
        tag("ul", key, class_="key", aria_label="Colors of the classes"),
        tag("div", cards[:OPEN_COLUMNS], class_="cards"),
    ]
    if rest := cards[OPEN_COLUMNS:]:
        found.append(details(f"{len(rest)} more columns", tag("div", rest, class_="cards")))
    left = contents.data["model"]["columns"] - len(cards)
    return [*found, paragraph(f"{count_noun(left, 'less important column')} not shown.")] if left else found


def _ranking(columns: list[dict[str, Any]]) -> Html:
    """Draw the importance of the first columns; nothing if it is not known."""
    ranked = [one for one in columns if "decibans" in one][:MAX_COLUMNS_RANKED]
    if len(ranked) < 2:
        return Html()
    labels, values = [one["column"] for one in ranked], [one["decibans"] for one in ranked]
    title = "Mean absolute evidence of each column, in decibans"
    numbers = ", ".join(f"{name} {value:.1f}" for name, value in zip(labels, values, strict=True))
    more = len(columns) - len(ranked)
    rest = f" ({count_noun(more, 'less important column')} below)" if more else ""
    return tag("figure", tag("figcaption", title + rest), ranking_chart(labels, values, f"{title}: {numbers}"))


def _matters(importance: dict[str, Any]) -> str:
    """Return the sentence about the rows behind the importance."""
    if not importance["rows"]:
        return "The importance of columns is not known."
    rows = f"{format_amount(importance['rows'])} rows ({importance['source']})"
    if importance["source"] == "left out":
        rows = f"{format_amount(importance['rows'])} training rows, each left out in turn"
    return f"Sorted by mean absolute evidence over {rows}. Gain: log-loss that the column saves, in bits per row."


def diagnosis_section(data: dict[str, Any]) -> list[Html]:
    """Render failed assumptions of plain Bayes, and what tuning did about them."""
    diagnosis = data["diagnosis"]
    found = []
    if "cannot_know" in diagnosis:
        found.append(note(diagnosis["cannot_know"]))
    else:
        found += _dependences(diagnosis)
    if diagnosis["misfits"]:
        lines = [
            (f"{one['column']} in {one['class']}", one["family"].split("(")[0], f"{one['distance']:.3f}")
            for one in diagnosis["misfits"][:MAX_FINDINGS_TABLED]
        ]
        head = ("column", "family", "Kolmogorov–Smirnov distance")
        found.append(html_table(head, lines, "Columns that do not fit their family", [1]))
    if few := diagnosis.get("small_classes"):
        classes = ", ".join(f"{one['class']} ({count_noun(one['rows'], 'row')})" for one in few[:MAX_FINDINGS_TABLED])
        found.append(
            note(f"Classes with few rows: {classes}. Remedy: more rows, stronger smoothing, Pooled() variances.")
        )
    return [*found, tag("h3", "Tuning"), tag("ul", (tag("li", line) for line in diagnosis["done"]))]


def _dependences(diagnosis: dict[str, Any]) -> list[Html]:
    tested = f"{count_noun(diagnosis['pairs_tested'], 'pair')} tested"
    if not diagnosis["dependences"]:
        return [paragraph(f"No dependence between columns within a class was found ({tested}).")]
    shown = diagnosis["dependences"][:MAX_FINDINGS_TABLED]
    head = ["columns", "mutual information, bits", "loss from assuming independence, bits per row"]
    lines = [[" and ".join(one["columns"]), f"{one['bits']:.3f}", f"{one['cost']:.3f}"] for one in shown]
    if {one["kind"] for one in shown} != {"dependent"}:
        head.append("kind")
        lines = [[*line, one["kind"]] for line, one in zip(lines, shown, strict=True)]
    table = html_table(head, lines, f"Columns that depend on each other within a class ({tested})", [3])
    return [table, *(paragraph(_sentence(remedy)) for remedy in diagnosis["remedies"])]


def decisions_section(data: dict[str, Any]) -> list[Html]:
    """Render the given losses and the cost of decisions."""
    decisions = data["decisions"]
    if decisions["loss"] is None:
        return [paragraph("No costs were given: the decision is the most probable class.")]
    costs = zip(decisions["decisions"], decisions["loss"], strict=True)
    rows = [(name, *(f"{cost:g}" for cost in line)) for name, line in costs]
    found = [html_table(("decision / truth", *decisions["classes"]), rows, "Cost of each decision")]
    if (threshold := decisions.get("threshold")) is not None:
        limit = format_three(threshold["posterior"])
        found.append(paragraph(f"Decide {threshold['class']} if its probability is above {limit}."))
    if "mean_cost" not in decisions:
        return [*found, note("The cost of decisions on new rows cannot be computed without such rows.")]
    cost, least = decisions["mean_cost"], decisions["baseline_cost"]
    summary = (
        f"On {data['quality']['source']}, least-cost decisions cost {format_three(cost)} per row; "
        f"always deciding {decisions['baseline_decision']}, the best single decision, would cost {format_three(least)}."
    )
    found.append(paragraph(summary))
    if len(decisions["classes"]) > MAX_CLASSES_TABLED:
        return found
    columns = zip(*decisions["decision_counts"], strict=True)
    decided = [(name, *map(format_amount, line)) for name, line in zip(decisions["decisions"], columns, strict=True)]
    return [*found, html_table(("decision / truth", *decisions["classes"]), decided, "Number of rows by decision")]


def rows_section(data: dict[str, Any]) -> list[Html]:
    """Render example rows with the evidence for their predictions."""
    if not data["rows"]:
        return [paragraph("No rows are shown.")]
    learned = "These are training rows; the model has seen them." if data["rows_learned"] else ""
    return [paragraph(learned), tag("div", (_row_card(one) for one in data["rows"]), class_="cards")]


def _row_card(one: dict[str, Any]) -> Html:
    chance = format_probability(one["posterior"][one["predicted"]])
    inside = [
        tag("h3", one["why"]),
        paragraph(f"Predicted {one['predicted']} with probability {chance}; true class {one['truth']}."),
    ]
    if one["terms"]:
        title = f"Evidence for {one['predicted']} against {one['against']}, in decibans"
        labels, values = ([term[key] for term in one["terms"]] for key in ("label", "decibans"))
        description = "; ".join(f"{name} {format_decibans(value)}" for name, value in zip(labels, values, strict=True))
        inside += [paragraph(title), waterfall(labels, values, f"{title}: {description}")]
    for column, words in one["words"].items():
        inside.append(
            paragraph(f"{column}: " + ", ".join(f"{word} {format_decibans(decibans)}" for word, decibans in words))
        )
    return tag("div", inside, class_="card")


# --- card of a column: chart, importance and table

# Evidence beyond odds of a million to 1 is clipped in a chart, with a mark.
MAX_EVIDENCE_DRAWN = 60.0

# Lines in the table of a chart.
TABLE_LINES = 13

# Classes with a column in that table.
TABLE_CLASSES = 6

# Classes named in a title.
TITLE_CLASSES = 4


def column_card(data: dict[str, Any], column: ColumnData, names: Sequence[str], colors: Sequence[str]) -> Html:
    """Render a column with open charts."""
    inside = [_facts(data), _words(column)]
    if column.values is not None:
        inside += [
            _evidence_chart(column, column.values, names, colors),
            _density_chart(column, column.values, names, colors),
            details("as a table", _column_table(column, column.values, names)),
        ]
    return tag("article", tag("h3", column.name), inside, class_="card")


def fold_card(data: dict[str, Any], column: ColumnData, names: Sequence[str], colors: Sequence[str]) -> Html:
    """Render a less important column: one chart, if there are few classes."""
    picture = Html()
    if column.values is not None and len(names) <= MANY_LINES:
        picture = _evidence_chart(column, column.values, names, colors)
    return tag("article", tag("h3", column.name), _facts(data, short=True), picture, class_="card")


def _facts(data: dict[str, Any], short: bool = False) -> Html:
    """Render importance, range, families and weights of a column."""
    if data["note"]:
        return paragraph(data["note"])
    known = ""
    if "decibans" in data:
        size = f"{data['decibans']:.1f} decibans"
        if np.isinf(data["decibans"]):
            own = np.isinf([data["min"], data["max"]]).any()
            why = "a value never seen in a class" if own else "a value seen only in the left-out row of a class"
            size = f"∞ decibans ({why} rules the class out)"
        bits = round(data["bits"], 3)
        gain = f"{bits:+.3f}".replace("-", "−") if bits else "0.000"
        known = f"mean absolute evidence {size}; gain {gain} bits"
    reach = ""
    if "values" in data:
        low, high = data["min"], data["max"]
        label, shown = list(data["evidence"].items())[-1]
        two = len(data["evidence"]) == 2  # the evidence for the first class mirrors that for the second
        if two and not np.isnan(shown).all():
            low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
        subject = f"evidence for {label}" if two else "range"
        reach = f"{subject} {format_decibans(low)} to {format_decibans(high)} decibans"
    weights = "; ".join(map(_describe_block, data["blocks"]))
    return tag(
        "div",
        paragraph("; ".join(filter(None, (known, reach))), class_="quiet"),
        [] if short else paragraph(weights, class_="quiet"),
    )


def _describe_block(block: dict[str, Any]) -> str:
    """Describe a block of a column: its family, its other columns and its weight."""
    family, weight = block["family"].split("(")[0], block["weight"]
    if block["columns"] == 1:
        if part := block["part"]:
            return f"{part}: {family}, weight {weight:.2g}" if weight else f"{part} not used"
        return f"on its own: {family}, weight {weight:.2g}" if weight else "not used on its own"
    covariance = re.search(r"covariance=(\w+)", block["family"])
    kind = f" ({covariance[1].lower()} covariance)" if covariance else ""
    return f"with {count_noun(block['columns'] - 1, 'other column')}: {family}{kind}, weight {weight:.2g}"


def _evidence_chart(column: ColumnData, values: ColumnValues, names: Sequence[str], colors: Sequence[str]) -> Html:
    """Draw the evidence; of two classes, for the second only, as the first mirrors it."""
    shown = slice(1, 2) if len(names) == 2 else slice(None)
    evidence = column.evidence[:, shown]
    title = f"evidence of {column.name} for {', '.join(names[shown][:TITLE_CLASSES])}, in decibans"
    if values.kind == "categories":
        places = _strongest(evidence)
        numbers = (
            [f"{values.names[k]} {format_decibans(evidence[k, 0])}" for k in places] if evidence.shape[1] == 1 else []
        )
        chart = bar_chart(
            [values.names[k] for k in places], evidence[places], colors[shown], "; ".join([title, *numbers])
        )
        hidden = len(values.names) - places.size
        weaker = f"Not shown: {count_noun(hidden, 'value')} with weaker evidence."
        return tag("div", chart, paragraph(weaker, class_="quiet")) if hidden else chart
    ends = _ends(values)
    title = f"{title}, from {ends[0]} to {ends[1]}"
    if np.abs(evidence[np.isfinite(evidence)]).max(initial=0.0) > MAX_EVIDENCE_DRAWN:
        title += f", clipped at {MAX_EVIDENCE_DRAWN:.0f}"
    if np.isinf(evidence).any():
        title += ", infinite where a triangle is marked ∞"
    label = f"evidence for {names[1]}, decibans" if len(names) == 2 else "evidence, decibans"
    return line_chart(values.positions, evidence, colors[shown], _limits(evidence), ends, label, title)


def _ends(values: ColumnValues) -> tuple[str, str]:
    """Format the first and the last value."""
    if values.dates:
        return values.names[0], values.names[-1]
    return format_three(values.positions[0]), format_three(values.positions[-1])


def _limits(evidence: Floats) -> tuple[float, float]:
    """Return the vertical limits of a chart of evidence."""
    finite = evidence[np.isfinite(evidence)]
    low, high = finite.min(initial=-1.0), finite.max(initial=1.0)
    return max(float(low), -MAX_EVIDENCE_DRAWN), min(float(high), MAX_EVIDENCE_DRAWN)


def _density_chart(column: ColumnData, values: ColumnValues, names: Sequence[str], colors: Sequence[str]) -> Html:
    """Draw the distribution within each class; nothing for categories, whose evidence shows the same."""
    if values.kind == "categories":
        return Html()
    density = np.where(np.isfinite(column.density), column.density, 0.0)
    title = f"distribution of {column.name} in {', '.join(names[:TITLE_CLASSES])}"
    peak = float(density.max())
    if (top := find_density_limit(values.positions, density)) < peak:
        title += f", clipped at {top:.3g} below a peak of {peak:.3g}"
    return line_chart(values.positions, density, colors, (0.0, top), _ends(values), "density", title)


def _strongest(evidence: Floats) -> Integers:
    """Return the positions of the categories with the strongest evidence, in table order."""
    size = np.abs(np.nan_to_num(evidence, posinf=1e300, neginf=-1e300)).max(axis=1)
    return np.sort(np.argsort(-size, kind="stable")[:MAX_CATEGORIES_SHOWN])


def _column_table(column: ColumnData, values: ColumnValues, names: Sequence[str]) -> Html:
    places = _strongest(column.evidence)
    if values.kind != "categories":
        places = np.unique(np.linspace(0, len(values.cells) - 1, TABLE_LINES).astype(np.int64))
    lines = [
        (values.names[k], *(format_decibans(decibans, 2) for decibans in column.evidence[k, :TABLE_CLASSES].tolist()))
        for k in places
    ]
    caption = f"evidence of {column.name} for each class, in decibans"
    return html_table(("value", *names[:TABLE_CLASSES]), lines, caption)


def _words(column: ColumnData) -> list[Html]:
    """Render the characteristic words of each class."""
    return [
        paragraph(
            tag("strong", label), ": ", ", ".join(f"{word} {format_decibans(decibans)}" for word, decibans in words)
        )
        for label, words in column.words
    ]
