"""Train on the bundled weather table, classify a day, and explain the prediction."""

from deciban import BayesClassifier
from deciban.datasets import weather

day = [{"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}]

clf = BayesClassifier(alpha=0).fit(weather(), "play")
print(clf.schema_, end="\n\n")
print(clf.explain(day, by="block"))
