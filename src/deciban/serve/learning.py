"""The learner of a served model, from the settings of the service."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from deciban.serve.settings import ServeSettings
from deciban.serve.state import State

Result = TypeVar("Result")


def opened_learner(settings: ServeSettings, publish: Callable[[State], None]) -> Any:
    """The learner that owns the model file; it publishes each new state, the first one before this returns."""
    from deciban.serve.learn_settings import LearnSettings
    from deciban.serve.learner import Learner

    chosen = LearnSettings(new_classes=settings.new_classes, decay=settings.decay, retune_every=settings.retune_every)
    return Learner.open(settings.path, chosen, publish)


async def settled(future: "Future[Result]") -> Result:
    """What the learner has done; it goes on with it also where the client has gone."""
    return await asyncio.shield(asyncio.wrap_future(future))
