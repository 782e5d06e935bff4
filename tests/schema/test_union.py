"""The schema of two tables together."""

import pytest

from deciban import Categorical, Gaussian, JointGaussian, JointTable, Multinomial, SchemaError
from deciban.families import Family
from deciban.schema.schema import GIVEN, ChosenBy, ColumnGroup, LooksLike, Reason, Schema, union_schemas

INFERRED = Reason(ChosenBy.INFERRED, "floating point")


def group(family: Family, *columns: int, **options: bool) -> ColumnGroup:
    return ColumnGroup(family, columns, (INFERRED,) * len(columns), **options)


def schema(names: str | None, *groups: ColumnGroup, **facts: object) -> Schema:
    width = len(names) if names is not None else max(column for one in groups for column in one.columns) + 1
    return Schema(None if names is None else tuple(names), width, groups, **facts)


def test_columns_of_one_family_join_their_group() -> None:
    one = schema("ab", group(Gaussian(), 0), group(Categorical(), 1))
    other = schema("cba", group(Gaussian(), 0, 2), group(Categorical(), 1))
    both = union_schemas(one, other)
    assert both.names == ("a", "b", "c")
    assert both.groups == (group(Gaussian(), 0, 2), group(Categorical(), 1))
    assert union_schemas(both, one) == both


def test_a_column_keeps_its_reason() -> None:
    one = schema("a", ColumnGroup(Gaussian(), (0,), (GIVEN,)))
    (found,) = union_schemas(one, schema("ab", group(Gaussian(), 0, 1))).groups
    assert found.reasons == (GIVEN, INFERRED)
    assert found.inferred_columns == [1]


def test_another_family_joins_as_a_group_of_its_own() -> None:
    both = union_schemas(schema("a", group(Gaussian(), 0)), schema("b", group(Gaussian(floor=0.5), 0)))
    assert both.groups == (group(Gaussian(), 0), group(Gaussian(floor=0.5), 1))


def test_blocks_are_the_same_in_any_order_or_apart() -> None:
    one = schema("ab", group(JointGaussian(), 0, 1))
    assert union_schemas(one, schema("ba", group(JointGaussian(), 0, 1))).groups == one.groups
    apart = union_schemas(one, schema("cd", group(JointGaussian(), 0, 1)))
    assert apart.groups == (group(JointGaussian(), 0, 1), group(JointGaussian(), 2, 3))


def test_open_blocks_take_columns_in() -> None:
    one, other = (schema(names, group(Multinomial(), 0, 1, open=True)) for names in ("ab", "bc"))
    assert union_schemas(one, other).groups == (group(Multinomial(), 0, 1, 2, open=True),)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (schema("a", group(Gaussian(), 0)), schema("a", group(Categorical(), 0)), "column 'a' is Gaussian.* in one"),
        (schema("ab", group(JointTable(), 0, 1)), schema("abc", group(JointTable(), 0, 1, 2)), "form one block"),
        (
            schema("abcd", group(JointTable(), 0, 1), group(JointTable(), 2, 3)),
            schema("abcd", group(JointTable(), 1, 2)),
            "the columns 'b', 'c' form one block",
        ),
        (schema("a", group(Gaussian(), 0)), schema(None, group(Gaussian(), 0)), "1 and 1 columns, with and without"),
        (schema(None, group(Gaussian(), 0)), schema(None, group(Gaussian(), 1)), "1 and 2 columns"),
    ],
)
def test_schemas_that_disagree_are_refused(one: Schema, other: Schema, words: str) -> None:
    for pair in ((one, other), (other, one)):
        with pytest.raises(SchemaError):
            union_schemas(*pair)
    with pytest.raises(SchemaError, match=words):
        union_schemas(one, other)


def test_auxiliary_groups_stay_as_far_as_both_have_counted_them() -> None:
    plain = group(Gaussian(), 0, 1)
    numbers, pair = group(Categorical(), 0, 1, auxiliary=True), group(JointTable(), 0, 1, auxiliary=True)
    whole = schema("ab", plain, numbers, pair)
    assert union_schemas(whole, schema("ab", plain)).groups == (plain,)
    half = schema("ab", plain, group(Categorical(), 1, auxiliary=True))
    assert union_schemas(whole, half).groups == (plain, group(Categorical(), 1, auxiliary=True))
    other = schema("cd", plain)
    assert union_schemas(whole, other).groups == (group(Gaussian(), 0, 1, 2, 3), numbers, pair)


def test_what_either_knows_of_a_column_is_known() -> None:
    identifier = LooksLike("identifier")
    one = schema("ab", group(Gaussian(), 0, 1), types=("double", "null"))
    other = schema("bc", group(Gaussian(), 0, 1), types=("int64", "int64"), looks_like=(None, identifier))
    both = union_schemas(one, other)
    assert both.types == ("double", "int64", "int64")
    assert both.looks_like == (None, None, identifier)
    assert union_schemas(one, schema("c", group(Gaussian(), 0))).looks_like is None
