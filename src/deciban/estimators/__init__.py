"""scikit-learn estimators: BayesClassifier, the drop-ins, MinimumRisk, EvidenceSelector."""
