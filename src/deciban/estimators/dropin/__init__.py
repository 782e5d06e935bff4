"""The drop-in classifiers, one file for each group; import them from `deciban.dropin`."""
