"""Modules put together are one script that does the same, whatever names they share."""

import subprocess
from pathlib import Path

import pytest

from deciban.web.scripts import bundle
from tests.support.node import needs_node


def written(folder: Path, **sources: str) -> list[Path]:
    paths = [folder / f"{name}.js" for name in sources]
    for path, source in zip(paths, sources.values(), strict=True):
        path.write_text(source, encoding="utf-8")
    return paths


@needs_node
def test_modules_keep_their_own_names_and_stand_behind_what_they_import(tmp_path: Path) -> None:
    modules = written(
        tmp_path,
        last='import { twice } from "./middle.js";\nimport {\n  one as first,\n} from "../web/first.js";\n'
        'const hidden = "last";\nexport function told() { return [hidden, twice(first), first].join(); }\n',
        middle='const hidden = 2;\nexport const twice = (value) => hidden * value;\n',
        first='const hidden = 21;\nexport const one = hidden;\nexport class Thing {}\n',
    )  # fmt: skip
    script = bundle(modules, "console.log($last.told());")
    found = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    assert found.stdout == "last,42,21\n"


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ({"a": 'import { x } from "./b.js";\n'}, "which does not exist"),
        ({"a": 'import { x } from "./b.js";\n', "b": 'import { y } from "./a.js";\n'}, "which is a circular import"),
        ({"a": "export default 3;\n"}, "cannot be bundled"),
        ({"a": 'import x from "./b.js";\n', "b": "export const y = 1;\n"}, "cannot be bundled"),
    ],
)
def test_what_cannot_be_put_together_is_refused(tmp_path: Path, sources: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        bundle(written(tmp_path, **sources))
