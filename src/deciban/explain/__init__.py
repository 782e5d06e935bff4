"""Why a row was classified as it was."""
