"""Deadlines that one timer keeps: as `asyncio.timeout`, whose twin they are."""

import asyncio

import pytest

from deciban.serve.middleware import Deadlines


def test_a_task_is_stopped_in_time_and_others_go_on() -> None:
    deadlines = Deadlines()

    async def wait(seconds: float, limit: float) -> str:
        try:
            with deadlines.within(limit):
                await asyncio.sleep(seconds)
        except TimeoutError:
            await asyncio.sleep(0)  # the task is not cancelled any more
            return "late"
        return "in time"

    async def main() -> list[str]:
        return await asyncio.gather(wait(60, 0.1), wait(0.2, 60), wait(60, 0.2), wait(0, 60))

    assert asyncio.run(main()) == ["late", "in time", "late", "in time"]


@pytest.mark.parametrize("late", [False, True])
def test_a_task_that_is_cancelled_by_others_is_cancelled(late: bool) -> None:
    """Also one that is late at the same moment."""
    deadlines = Deadlines()

    async def main() -> None:
        async def wait() -> None:
            with deadlines.within(5):
                await asyncio.sleep(5)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.01)
        if late:
            next(iter(deadlines.open)).stop()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not deadlines.open

    asyncio.run(main())


def test_other_errors_pass_through() -> None:
    deadlines = Deadlines()

    async def main() -> None:
        deadline = deadlines.within(5)
        with pytest.raises(TimeoutError, match="of something else"), deadline:
            raise TimeoutError("of something else")
        assert not deadline.expired

    asyncio.run(main())


def test_the_timer_ends_when_no_deadline_is_open() -> None:
    deadlines = Deadlines()

    async def main() -> None:
        with deadlines.within(0.2):
            pass
        await asyncio.sleep(0.1)
        assert deadlines._timer is None
        with pytest.raises(TimeoutError), deadlines.within(0.1):  # and begins again
            await asyncio.sleep(5)

    asyncio.run(main())
    asyncio.run(main())  # in another event loop
