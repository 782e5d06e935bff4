"""The scorer that `to_python` writes, as modules of the standard library alone, for Python 3.8 and later.

They mirror those of `export/js`, and are put together into one file; each may import the ones before it.
"""
