"""Node, which runs JavaScript that the package writes."""

import shutil

import pytest

NODE = shutil.which("node")

NO_NODE = "there is no `node` on the PATH: install `nodejs`"

needs_node = pytest.mark.skipif(NODE is None, reason=NO_NODE)
