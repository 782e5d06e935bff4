"""A page with nothing but the playground, under a policy that allows nothing but its own script and style."""

import base64
import hashlib
from pathlib import Path

from deciban.web.assemble import assembled

SOURCE = Path(__file__).parents[2] / "src" / "deciban"

# In the order in which they must stand: each imports only from those before it.
MODULES = (
    "web/dom.js",
    "page/maths_normal.js",
    "page/maths_line.js",
    "page/maths_plane.js",
    "page/maths_counts.js",
    "page/maths_belief.js",
    "page/maths_examples.js",
    "page/controls.js",
    "page/scene_line_state.js",
    "page/scene_line_picture.js",
    "page/scene_line_controls.js",
    "page/scene_line.js",
    "page/scene_plane_picture.js",
    "page/scene_plane_figures.js",
    "page/scene_plane.js",
    "page/scene_weather.js",
    "page/scene_theorem.js",
    "page/scene_balance_picture.js",
    "page/scene_balance_pieces.js",
    "page/scene_balance.js",
    "page/playground.js",
)


def _allowed(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def playground_page(path: Path) -> Path:
    """The page, written to a file."""
    modules = assembled(SOURCE / module for module in MODULES)
    script = f"{modules}\nwindow.played = mountPlayground(document.querySelector('main'));\n"
    style = "".join((SOURCE / sheet).read_text() for sheet in ("report/page.css", "page/playground.css"))
    policy = f"default-src 'none'; script-src {_allowed(script)}; style-src {_allowed(style)}; img-src data:"
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Playground</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{style}</style></head><body><header><h1>Playground</h1></header><main></main>"
        f'<script type="module">{script}</script></body></html>'
    )
    return path
