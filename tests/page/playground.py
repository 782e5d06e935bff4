"""A page with nothing but the playground, under a policy that allows nothing but its own script and style."""

from pathlib import Path

from deciban.web.html import common_css
from deciban.web.scripts import bundle, content_policy

SOURCE = Path(__file__).parents[2] / "src" / "deciban"
PAGE = SOURCE / "page"
MODULES = [
    PAGE / "controls.js",
    *sorted(PAGE.glob("maths_*.js")),
    *sorted(PAGE.glob("scene_*.js")),
    PAGE / "playground.js",
]


def playground_page(path: Path) -> Path:
    """The page, written to a file."""
    start = "window.played = $playground.mountPlayground(document.querySelector('main'));"
    script = bundle([SOURCE / "web" / "dom.js", *MODULES], start)
    style = common_css() + (PAGE / "playground.css").read_text()
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Playground</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy([script], [style])}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{style}</style></head><body><header><h1>Playground</h1></header><main></main>"
        f"<script>{script}</script></body></html>"
    )
    return path
