"""Completion by the shell: files by kind, columns of the typed table or model, classes, families.

Headers are read without the heavy packages, so that a completion takes about 0.2 s. Errors complete nothing.
"""

import glob
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from deciban.util.text_tables import format_class

Item: TypeAlias = "CompletionItem[str]"  # in quotes: until click 8.5 the class was not generic
Items = list[Item]
Complete = Callable[[click.Context, click.Parameter, str], Items]

MODEL_ENDINGS = (".dcb",)

# Files that a shell offers as tables if there are any; otherwise it offers all files.
TABLE_ENDINGS = (
    *(".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".feather", ".arrows", ".orc"),
    *(".xlsx", ".gz", ".zst"),
)

# Types of columns for --type, as in `deciban.tables.cells`.
TYPE_NAMES = ("text", "number", "bool", "date", "time")

# Names with one of these are written in double quotes where several names are given.
QUOTED = set(',="')

# Characters with which bash runs a command, also in double quotes, and those that end or escape quotes.
EXECUTED = set("$`")
CLOSES_QUOTES = set("\"'\\")

# Characters that are special in bash, outside quotes.
SPECIAL = re.compile(r"[^\w@%+=:,./-]", re.ASCII)


def _files(*endings: str) -> Complete:
    """Return a completion of files with these endings, or of all files."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
        return [CompletionItem(incomplete, type="file", endings=endings)]

    return complete


complete_files = _files()
complete_models = _files(*MODEL_ENDINGS)
complete_tables = _files(*TABLE_ENDINGS)
complete_sources = _files(*MODEL_ENDINGS, *TABLE_ENDINGS)


def complete_column(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a column; not one that was given for this option before."""
    return _matching(_others(_columns(context), context.params.get(str(parameter.name))), incomplete)


def complete_model_column(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a column of the model."""
    return _matching(_others(_columns_of_models(context), context.params.get(str(parameter.name))), incomplete)


def complete_columns(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Complete the last of several names of columns, separated by commas."""
    before, name = _last_name(incomplete)
    names = _others(_columns(context), before.split(","))
    return _matching(map(_quote_name, names), name, before)


def complete_type(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Complete COLUMN=TYPE."""
    column, sign, kind = incomplete.rpartition("=")
    if sign:
        return _matching(TYPE_NAMES, kind, f"{column}=")
    return _matching((f"{name}=" for name in _columns(context)), incomplete, more_follows=True)


def complete_sheet(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a sheet of the first table."""
    from python_calamine import load_workbook

    tables = _values(context, "table", "sources")
    return _matching(load_workbook(os.path.expanduser(tables[0])).sheet_names, incomplete) if tables else []


def complete_family(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Complete COLUMN=FAMILY, or the last of several columns."""
    columns, sign, family = incomplete.rpartition("=")
    if sign:
        from deciban.families import list_families

        return _matching(sorted(kind.__name__ for kind in list_families()), family, f"{columns}=")
    before, name = _last_name(incomplete)
    names = _others(_columns(context), before.split(","))
    return _matching((f"{_quote_name(one)}=" for one in names), name, before, more_follows=True)


def complete_class(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Complete a class of the model, if its classes are texts or booleans."""
    found = []
    for path in _models(context):
        classes = _read_model_header(path)["counts"]["classes"]
        found += list(map(format_class, classes.get("values", ())))
    return _matching(found, incomplete)


def _matching(names: Iterable[str], typed: str, before: str = "", more_follows: bool = False) -> Items:
    """Return the names that begin with the typed text, in any case if none does in this case.

    more_follows: the shell adds no space.
    """
    known = [name for name in dict.fromkeys(names) if name.isprintable()]  # a line break would split a name
    found = [name for name in known if name.startswith(typed)]
    found = found or [name for name in known if name.lower().startswith(typed.lower())]
    return [CompletionItem(before + name, type="part" if more_follows else "plain") for name in found]


def _others(names: Iterable[str], given: Any) -> list[str]:
    """Return the names that are not among those given before."""
    before = given if isinstance(given, list | tuple) else ()
    return [name for name in names if name not in before]


def _last_name(text: str) -> tuple[str, str]:
    """Split a list of names before the last one, which is being typed.

    >>> _last_name("id,na"), _last_name('"last, first",a'), _last_name('id,"last, f')
    (('id,', 'na'), ('"last, first",', 'a'), ('id,', '"last, f'))
    """
    finished = re.match(r'(?:(?:"[^"]*"|[^",])*,)*', text)
    before = finished[0] if finished else ""
    return before, text[len(before) :]


def _quote_name(name: str) -> str:
    return f'"{name}"' if QUOTED & set(name) else name


# Columns and classes of what was typed


def _columns(context: click.Context) -> list[str]:
    """Return the columns of the first table, or of the models."""
    models = _models(context)
    for source in _values(context, "table", "sources"):
        if source not in models and (names := _columns_of_table(source, context.params)):
            return names
    return _columns_of_models(context)


def _columns_of_models(context: click.Context) -> list[str]:
    found: list[str] = []
    for path in _models(context):
        header = _read_model_header(path)
        target = header["origin"]["target"]
        found += [*(header["counts"]["schema"]["names"] or ()), *([] if target is None else [target])]
    return list(dict.fromkeys(found))


def _models(context: click.Context) -> list[str]:
    """Return the model files that were typed."""
    given = _values(context, "model", "models", "sources")
    if not given:
        return []
    from deciban.store.layout import is_model

    return [path for path in given if is_model(os.path.expanduser(path))]


def _values(context: click.Context, *names: str) -> list[str]:
    """Return the values of these arguments of a command."""
    found = []
    for name in names:
        value = context.params.get(name)
        found += [value] if isinstance(value, str) else list(value or ())
    return found


def _read_model_header(path: str) -> Any:
    from deciban.store.layout import read_header

    return read_header(os.path.expanduser(path))


def _columns_of_table(source: str, options: dict[str, Any]) -> list[str]:
    """Return the columns of a file, or of the first file of a folder or glob; no query or stream is read."""
    from deciban.sources.sniff import sniff

    path = os.path.expanduser(source)
    if os.path.isdir(path):
        path = os.path.join(glob.escape(path), "*")
    if not os.path.exists(path):
        path = next((file for file in sorted(glob.glob(path)) if file.endswith(TABLE_ENDINGS)), path)
    if not os.path.isfile(path):
        return []
    delimiter = {"\\t": "\t", "tab": "\t"}.get(options.get("delimiter") or "", options.get("delimiter"))
    found = sniff(Path(path), path, options.get("encoding"), delimiter, not options.get("no_header"))
    if found.kind == "csv":
        return list(found.header)
    from deciban.sources.open import scan

    return list(scan(path).names)


# Shells


class QuietCompletion(ShellComplete):
    """Completion that prints nothing if something fails, and that completes the value in `--option=value`."""

    def complete(self) -> str:
        """Return the lines for the shell script."""
        with suppress(Exception):
            args, word = self.get_completion_args()
            option = word[: word.index("=") + 1] if word.startswith("--") and "=" in word else ""
            items = self.get_completions(args, word)
            return "\n".join(self.format_items(items, word, option))
        return ""

    def format_items(self, items: Items, word: str, option: str) -> Iterator[str]:
        """Yield lines for the items. word: the incomplete word. option: its part up to the equals sign."""
        for item in items:
            for one in self.expand(item):
                one.value = option + one.value
                yield self.format_completion(one)

    def expand(self, item: Item) -> Iterator[Item]:
        """Yield files and folders for an item of files with known endings; the item itself without such files."""
        paths = _list_paths(item.value, item.endings) if item.type == "file" and item.endings else []
        yield from (CompletionItem(path, type="path") for path in paths)
        if not paths:
            yield item


def _list_paths(typed: str, endings: Sequence[str]) -> list[str]:
    """Return the files with these endings that begin as typed, and the folders; none without such a file or folder."""
    place, start = os.path.split(typed)
    prefix = typed[: len(typed) - len(start)]
    found = []
    with os.scandir(os.path.expanduser(place) or ".") as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(start) and (start or not name.startswith(".")):
                if entry.is_dir():
                    found.append(f"{prefix}{name}/")
                elif name.lower().endswith(tuple(endings)):
                    found.append(prefix + name)
    return sorted(found)


@add_completion_class
class Bash(QuietCompletion, BashComplete):
    """Completion in bash, which splits words at = and :, and inserts what it gets without quotes."""

    source_template = r"""
%(complete_func)s() {
    local IFS=$'\n' line
    COMPREPLY=()
    for line in $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1" 2>/dev/null)
    do
        case $line in
            file,*) compopt -o default; COMPREPLY=(); return ;;
            path,*) compopt -o filenames ;;
            part,*) compopt -o nospace ;;
        esac
        COMPREPLY+=("${line#*,}")
    done
}
complete -o nosort -o bashdefault -o default -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor and the incomplete one, joined where bash has split them."""
        place, words, join = int(os.environ["COMP_CWORD"]), [""], False
        for word in os.environ["COMP_WORDS"].split("\n")[1 : place + 1]:
            sign = bool(re.fullmatch("[=:]+", word))
            if sign or join:
                words[-1] += word
            else:
                words.append(word)
            join = sign
        plain = [next(iter(split_arg_string(word)), "") for word in words[1:]]
        return plain[:-1], plain[-1] if plain else ""

    def format_items(self, items: Items, word: str, option: str) -> Iterator[str]:
        """Yield lines, without the part of the word that bash keeps.

        Bash inserts names of files with quotes, but not in front of $ and backquotes, which run commands. Names with
        these are left out, unless single quotes are open. Other items with special characters are given as names of
        files, or with backslashes.
        """
        value = word[len(option) :]
        last = os.environ["COMP_WORDS"].split("\n")[int(os.environ["COMP_CWORD"])][:1]
        quoted = last in ("'", '"')  # the word is not split, and bash closes the quotes
        kept = 0 if quoted else max(value.rfind("="), value.rfind(":")) + 1
        executed = set[str]() if last == "'" else EXECUTED
        found = [one for item in items for one in self.expand(item) if executed.isdisjoint(one.value[kept:])]
        special = any(shlex.quote(one.value) != one.value for one in found if one.type != "file")
        for one in found:
            if special and one.type == "plain":
                one.type = "path"  # bash quotes only names of files
            one.value = one.value[kept:].removesuffix("/") if one.type == "path" else one.value[kept:]
            if one.type == "part" and not quoted:
                one.value = SPECIAL.sub(r"\\\g<0>", one.value)
            if one.type != "part" or not quoted or CLOSES_QUOTES.isdisjoint(one.value):
                yield self.format_completion(one)


@add_completion_class
class Zsh(QuietCompletion, ZshComplete):
    """Completion in zsh, which finds files itself."""

    source_template = r"""#compdef %(prog_name)s
%(complete_func)s() {
    local -a words_found parts_found response
    local kind value
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for kind value in ${response}; do
        case $kind in
            file) [[ $value == _ ]] && _files || _files -g "$value" ;;
            part) parts_found+=("$value") ;;
            *) words_found+=("$value") ;;
        esac
    done
    (( $#words_found )) && compadd -U -V unsorted -a words_found
    (( $#parts_found )) && compadd -U -S '' -V unsorted -a parts_found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

    def expand(self, item: Item) -> Iterator[Item]:
        """Yield the item, with a pattern of endings for files."""
        if item.type == "file":
            names = [ending.removeprefix(".") for ending in item.endings or ()]
            pattern = f"*.({'|'.join(names)})" if len(names) > 1 else "".join(f"*.{name}" for name in names)
            item = CompletionItem(pattern or "_", type="file")
        yield item

    def format_completion(self, item: Item) -> str:
        """Return two lines: kind and value."""
        return f"{item.type}\n{item.value}"


@add_completion_class
class Fish(QuietCompletion, FishComplete):
    """Completion in fish."""

    source_template = r"""function %(complete_func)s
    for line in (COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -ct | string collect) \
            %(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
        set -l found (string split -m 1 , -- $line)
        if test "$found[1]" = file
            __fish_complete_path $found[2]
        else
            echo $found[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""
