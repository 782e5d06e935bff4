"""Who chose the families of a model that was read: files have only the texts of reasons."""

from collections.abc import Mapping
from dataclasses import replace

from deciban.families import Family
from deciban.model.fitted import Fitted
from deciban.schema.schema import ChosenBy, ColumnGroup, Reason, Schema


def with_tuned_reasons(fitted: Fitted) -> Fitted:
    """The same model with the reasons of what tuning chose marked as such: all auxiliary groups, and each column of the
    tuning that has the family that was chosen for it."""
    tuning = fitted.tuning
    counts = replace(fitted.counts, schema=_marked(fitted.counts.schema, {}))
    if tuning is not None:
        chosen = {choice.column: choice.family for choice in tuning.choices}
        tuning = replace(tuning, schema=_marked(tuning.schema, chosen))
    return replace(fitted, counts=counts, tuning=tuning)


def _marked(schema: Schema, chosen: Mapping[str, Family]) -> Schema:
    def reason(group: ColumnGroup, column: int, old: Reason) -> Reason:
        tuned = group.auxiliary or chosen.get(schema.column_name(column)) == group.family
        return replace(old, source=ChosenBy.TUNED) if tuned and old.source is ChosenBy.INFERRED else old

    def marked(group: ColumnGroup) -> ColumnGroup:
        pairs = zip(group.columns, group.reasons, strict=True)
        return replace(group, reasons=tuple(reason(group, column, old) for column, old in pairs))

    if not chosen and not any(group.auxiliary for group in schema.groups):
        return schema
    return replace(schema, groups=tuple(map(marked, schema.groups)))
