"""Parts of the scorer that `to_python` writes, for the standard library of Python 3.8 and later.

They mirror the files of `javascript_runtime`. `to_python` concatenates them; each may import the ones before it.
"""
