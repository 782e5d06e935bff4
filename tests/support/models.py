"""Tables and models that reports are made of."""

import numpy as np
import pandas as pd

from deciban import BayesClassifier

HOSTILE = {
    "quotes": "it's \"quoted\" & 'so'",
    "script": "</script><script>document.title='broken'</script>",
    "markup": "<img src=x onerror=alert(1)>",
    "template": "${alert(1)} {{7*7}} `x`",
    "arabic": "العمر بالسنوات",
    "long": "a very long name " * 12,
    "lines": "two\nlines\u2028and more",
    "proto": "__proto__",
}

WORDS = ["the", "shop", "was", "open", "when", "we", "came", "by", "on", "monday", "with", "friends"]


def mixed_table(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Numbers, categories, yes/no, counts, texts and missing cells, which tell something of who buys."""
    rng = np.random.default_rng(seed)
    buys = rng.random(rows) < 0.4
    table = pd.DataFrame(
        {
            "age": rng.normal(40 + 8 * buys, 10).round(1),
            "income": rng.lognormal(3 + 0.4 * buys, 0.5).round(2),
            "town": np.where(rng.random(rows) < 0.3 + 0.3 * buys, "Ulm", "Bern"),
            "member": rng.random(rows) < 0.3 + 0.4 * buys,
            "visits": rng.poisson(2 + 2 * buys),
            "note": [
                ("a good offer, thank you " if good else "too dear for me ") + " ".join(rng.choice(WORDS, 4))
                for good in rng.random(rows) < 0.2 + 0.5 * buys
            ],
            "buys": np.where(buys, "yes", "no"),
        }
    )
    table.loc[::9, "income"] = np.nan
    table.loc[::11, "town"] = None
    return table


def hostile_table(rows: int = 300) -> pd.DataFrame:
    """A table whose names, values and classes try to break a page."""
    rng = np.random.default_rng(1)
    names = list(HOSTILE.values())
    y = rng.integers(0, 2, rows)
    table = {name: rng.normal(y, 1.0) for name in names[:4]}
    values = np.array(names, dtype=object)
    table |= {name: values[(rng.integers(0, 4, rows) + 3 * y) % len(names)] for name in names[4:]}
    table["note"] = values[rng.integers(0, len(names), rows)]
    return pd.DataFrame({**table, "class": np.array([HOSTILE["script"], HOSTILE["arabic"]], dtype=object)[y]})


def mixed_model(tune: str | None = "auto") -> BayesClassifier:
    return BayesClassifier(tune=tune).fit(mixed_table(), "buys")
