"""Hyper-parameters of tuning: frozen, and each documented."""

from dataclasses import FrozenInstanceError, fields

import pytest

from deciban.fitting.tune import hyperparameters

SETTINGS = [value for name, value in vars(hyperparameters).items() if name.isupper()]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: type(settings).__name__)
def test_each_field_is_documented_and_frozen(settings) -> None:
    text = type(settings).__doc__ or ""
    for field in fields(settings):
        assert f"\n    {field.name}: " in text
        with pytest.raises(FrozenInstanceError):
            setattr(settings, field.name, None)
