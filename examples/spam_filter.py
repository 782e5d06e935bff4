"""Spam filter that learns every email
===================================

The filter learns every email after it has classified it, and forgets emails that were labeled by
mistake. Halfway, a new kind of spam begins. Forgetting is exact: the probabilities return to their
old values, to the last bit.

::

    python examples/spam_filter.py [EMAILS] [--output FOLDER]

The data are a simulated mailbox, so that no private emails are shown. EMAILS can be a Parquet file
of your own with the columns ``text`` and ``label`` (ham or spam), in order of arrival.

**What to learn:** ``partial_fit`` and ``forget`` on single emails, why a filter must keep learning,
an explanation word by word, and that forgetting is exact.

On real messages, which are not included, the errors are:

================================================  ====================  =================
data                                              learns every message  stopped after 100
================================================  ====================  =================
SMS Spam Collection (5,574 messages)              1.8%                  4.0%
SpamAssassin corpus (6,046 emails, random order)  2.3%                  6.1%
================================================  ====================  =================

Forgetting is exact there, too.
"""

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from deciban import BayesClassifier, Text

# %%
# A simulated mailbox
# -------------------
# An email consists of a few phrases of one kind. Half of the emails contain a phrase of another kind as well.

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


def mailbox(mails: int = 1200, share_of_spam: float = 0.4, stray: float = 0.5, seed: int = 0) -> pd.DataFrame:
    """Return emails in order: two to four phrases of one kind, and sometimes a stray one; "coins" begin halfway."""
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


parser = ArgumentParser()
parser.add_argument("emails", nargs="?", help="Parquet file with the columns text and label")
parser.add_argument("--output", type=Path, help="folder for the picture")
given = parser.parse_args()
emails = pd.read_parquet(given.emails) if given.emails else mailbox()

# %%
# Learn every email after it has been classified
# ----------------------------------------------
# One filter keeps learning. The other one stops after the first 100 emails.

FIRST = 100  # labeled emails at the start


def filter_emails(emails: pd.DataFrame) -> tuple[BayesClassifier, np.ndarray, np.ndarray]:
    """Return the final filter, its errors before it learned each email, and the errors of a filter that stopped."""
    start = emails[:FIRST]
    learning = BayesClassifier({"text": Text()}, tune=None).fit(start[["text"]], start["label"])
    stopped = BayesClassifier({"text": Text()}, tune=None).fit(start[["text"]], start["label"])
    rest, guesses = emails[FIRST:], []
    for text, label in zip(rest["text"], rest["label"], strict=True):
        mail = {"text": [text]}
        guesses.append(learning.predict(mail)[0])
        learning.partial_fit(mail, [label])
    truth = rest["label"].to_numpy()
    return learning, np.array(guesses) != truth, stopped.predict(rest[["text"]]) != truth


learning, wrong, wrong_stopped = filter_emails(emails)
always_ham = (emails["label"][FIRST:] == "spam").mean()
print(f"{len(wrong):,} emails, each predicted before it was learned: error {wrong.mean():.1%}")
print(f"a filter that stopped after {FIRST} emails: {wrong_stopped.mean():.1%}; always ham: {always_ham:.1%}")

# %%
# Explain a prediction word by word
# ---------------------------------
# The evidence of each word is in decibans: +10 multiply the odds by ten.

mail = {"text": ["Claim your free coins now, or call me about lunch on Friday"]}
print(f"An uncertain email: {mail['text'][0]!r}\n{learning.explain(mail).summary(0)}\n")

# %%
# Forget emails that were labeled by mistake
# ------------------------------------------
# The counts of the emails are subtracted, so nothing of them is left.

MISTAKES = 40  # good emails labeled as spam by mistake

mistaken = emails[emails["kind"] == "shop" if "kind" in emails else emails["label"] == "ham"][-MISTAKES:]
before = learning.predict_proba(emails[["text"]])
learning.partial_fit(mistaken[["text"]], ["spam"] * len(mistaken))
during = learning.predict_proba(emails[["text"]])
learning.forget(mistaken[["text"]], ["spam"] * len(mistaken))
after = learning.predict_proba(emails[["text"]])
moved, left = np.abs(during - before).max(), np.abs(after - before).max()
lost = int(((during[:, 1] > 0.5) & (before[:, 1] <= 0.5)).sum())
print(f"{MISTAKES} good emails are labeled as spam by mistake: {lost} emails would now go to the spam folder.")
print(f"P(spam) changes by up to {moved:.2f}. After they are forgotten, the difference is {left:g}.")

# %%
# Errors over time
# ----------------
# The filter that stopped never learns the new kind of spam.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
number = np.arange(len(wrong)) + FIRST + 1
for errors, color, name in (
    (wrong_stopped, "#D55E00", f"stopped after\n{FIRST} emails"),
    (wrong, "#0072B2", "learns every\nemail"),
):
    axes.plot(number, errors.cumsum(), color=color)
    axes.annotate(name, (number[-1], errors.sum()), (5, 0), textcoords="offset points", color=color, va="center")
if not given.emails:
    middle = (len(wrong) + FIRST) // 2
    axes.axvline(middle, color="0.6", linestyle=":")
    axes.text(middle, axes.get_ylim()[1] * 0.9, "a new kind of spam begins ", color="0.4", ha="right")
axes.set(xlabel="emails received", ylabel="misclassified emails so far", xlim=(FIRST, number[-1]), ylim=(0, None))
axes.set_title("Errors of a filter that keeps learning", loc="left")
axes.spines[["top", "right"]].set_visible(False)
if given.output:
    figure.savefig(given.output / "spam_filter.png", dpi=110)
plt.show()
