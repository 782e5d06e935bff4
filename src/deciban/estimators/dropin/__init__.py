"""Drop-in classifiers; import them from `deciban.dropin`."""
