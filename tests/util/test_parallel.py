"""Work in threads keeps its order, its memory and its first error."""

from collections.abc import Iterator

import pytest

from deciban.util.parallel import map_in_threads


def test_batches_are_pulled_one_by_one() -> None:
    """A source larger than memory is never held as a whole."""
    pulled: list[int] = []

    def source() -> Iterator[int]:
        for k in range(100):
            pulled.append(k)
            yield k

    results = map_in_threads(lambda k: k, source(), threads=2)
    assert next(results) == 0
    assert len(pulled) <= 6
    assert list(results) == list(range(1, 100))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_what_went_wrong_first_is_told(threads: int) -> None:
    def source() -> Iterator[int]:
        yield from range(4)
        raise ValueError("the source")

    def action(k: int) -> int:
        if k == 2:
            raise ValueError("the action")
        return k

    with pytest.raises(ValueError, match="the action"):
        list(map_in_threads(action, source(), threads))
