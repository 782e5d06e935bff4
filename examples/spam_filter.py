"""Is this mail spam? A filter that learns every mail as it comes, and can forget one that was filed by mistake.

    python examples/spam_filter.py [MAILS] [--output FOLDER]

Data: a simulated mailbox (`mailbox`, below), so that nobody's letters are shown here. MAILS may be a Parquet file of
your own with the columns `text` and `label` (ham or spam), in the order in which the mails came: the SMS Spam
Collection, for example.

The reader learns: `partial_fit` and `forget` on single mails, why a filter has to go on learning (a campaign of a new
kind begins halfway), how a mail is explained word by word, and that forgetting is exact.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from deciban import BayesClassifier, Text

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
PHRASES = {
    "work": "the meeting moves to friday|please read the draft report|attached is the budget|can you call the client"
    "|the server is down again|minutes of the project meeting|i am on holiday next week|your invoice is approved",
    "friends": "see you at lunch|dinner at our place on saturday|thanks for the photos|how was your holiday"
    "|the kids loved it|call me when you are home|do you want the tickets|happy birthday",
    "shop": "your order is on its way|free delivery on friday|your invoice is attached|an offer for our customers"
    "|rate your order|your account has a new invoice|click to track the parcel|thanks for your order",
    "prize": "you have won a prize|claim your free money now|click here to claim|you are a winner"
    "|this offer ends today|your account was selected|call now|win free tickets",
    "pills": "cheap pills without a doctor|lose weight now|free delivery of cheap pills|order now and save"
    "|click here for the offer|love your body again|doctors hate it|no prescription",
    "coins": "double your coins in a week|your wallet is waiting|a project that pays|our traders read the market"
    "|join the holiday sale of coins|the report they hide|friends made thousands|your first coin is on us",
}
HAM, SPAM = ("work", "friends", "shop"), ("prize", "pills", "coins")
FIRST = 100  # mails that the user has sorted before the filter begins
MISTAKES = 40  # good mails that somebody files as spam by mistake


def mailbox(mails: int = 1200, share_of_spam: float = 0.4, stray: float = 0.5, seed: int = 0) -> pd.DataFrame:
    """Mails in their order: two to four phrases of one kind, now and then a stray one; "coins" begin halfway."""
    rng = np.random.default_rng(seed)
    phrases = {kind: text.split("|") for kind, text in PHRASES.items()}
    rows = []
    for number in range(mails):
        spam = rng.random() < share_of_spam
        known = SPAM if number >= mails // 2 else SPAM[:2]
        kind = rng.choice(known if spam else HAM)
        said = list(rng.choice(phrases[kind], rng.integers(2, 5)))
        if rng.random() < stray:
            said.append(rng.choice(phrases[rng.choice([*HAM, *known])]))
        rows.append({"text": ", ".join(rng.permutation(said)), "label": "spam" if spam else "ham", "kind": str(kind)})
    return pd.DataFrame(rows)


def filter_mails(mails: pd.DataFrame) -> tuple[BayesClassifier, np.ndarray, np.ndarray]:
    """The filter at the end; which mails it had wrong before it learned them; which one that has stopped had wrong."""
    start = mails[:FIRST]
    learning = BayesClassifier({"text": Text()}, tune=None).fit(start[["text"]], start["label"])
    stopped = BayesClassifier({"text": Text()}, tune=None).fit(start[["text"]], start["label"])
    rest, guesses = mails[FIRST:], []
    for text, label in zip(rest["text"], rest["label"], strict=True):
        mail = {"text": [text]}
        guesses.append(learning.predict(mail)[0])
        learning.partial_fit(mail, [label])
    truth = rest["label"].to_numpy()
    return learning, np.array(guesses) != truth, stopped.predict(rest[["text"]]) != truth


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mails", nargs="?")
    parser.add_argument("--output", type=Path, default=GALLERY)
    given = parser.parse_args(arguments)
    mails = pd.read_parquet(given.mails) if given.mails else mailbox()
    learning, wrong, wrong_stopped = filter_mails(mails)
    always_ham = (mails["label"][FIRST:] == "spam").mean()
    print(f"{len(wrong)} mails, each guessed before it was learned: {wrong.mean():.1%} wrong.")
    print(f"A filter that stopped after {FIRST}: {wrong_stopped.mean():.1%}. All taken for ham: {always_ham:.1%}.")
    mail = {"text": ["Claim your free coins now, or call me about lunch on Friday"]}
    print(f"\nA mail that could be either: {mail['text'][0]!r}\n{learning.explain(mail).summary(0)}\n")

    mistaken = mails[mails["kind"] == "shop" if "kind" in mails else mails["label"] == "ham"][-MISTAKES:]
    before = learning.predict_proba(mails[["text"]])
    learning.partial_fit(mistaken[["text"]], ["spam"] * len(mistaken))
    during = learning.predict_proba(mails[["text"]])
    learning.forget(mistaken[["text"]], ["spam"] * len(mistaken))
    after = learning.predict_proba(mails[["text"]])
    moved, left = np.abs(during - before).max(), np.abs(after - before).max()
    lost = int(((during[:, 1] > 0.5) & (before[:, 1] <= 0.5)).sum())
    print(f"{MISTAKES} good mails are filed as spam by mistake: {lost} mails would now go to the spam folder.")
    print(f"P(spam) had moved by up to {moved:.2f}; when they are forgotten, it differs from what it was by {left:g}.")
    draw(wrong, wrong_stopped, not given.mails, given.output / "spam_filter.png")
    rates = {"wrong": wrong.mean(), "stopped": wrong_stopped.mean(), "always ham": always_ham}
    return rates | {"moved": moved, "left": left}


def draw(wrong: np.ndarray, wrong_stopped: np.ndarray, simulated: bool, picture: Path) -> None:
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    number = np.arange(len(wrong)) + FIRST + 1
    axes.plot(number, wrong_stopped.cumsum(), color="#D55E00", label=f"stopped after {FIRST} mails")
    axes.plot(number, wrong.cumsum(), color="#0072B2", label="learns every mail")
    if simulated:
        axes.axvline((len(wrong) + FIRST) // 2, color="0.6", linestyle=":")
        axes.text((len(wrong) + FIRST) // 2, axes.get_ylim()[1] * 0.9, " a new kind of spam begins", color="0.4")
    axes.set(xlabel="mails received", ylabel="mails sorted wrongly so far", xlim=(FIRST, number[-1]), ylim=(0, None))
    axes.set_title("A filter that goes on learning", loc="left")
    axes.legend(frameon=False, loc="center left")
    axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
