"""Files of text made UTF-8 with lines that all end alike, as copies."""

import codecs
import re
from pathlib import Path

import pyarrow as pa

from deciban.errors import DataError
from deciban.sources.sniff import FileFormat
from deciban.sources.temporary import Temporary, temporary

INSIDE = re.compile(r'(?:[^"]+|"")*')


def recoded(path: Path, name: str, found: FileFormat) -> Temporary:
    """The file as UTF-8 with lines that all end alike; line breaks within quotes stay as they are."""
    copy = temporary()
    encoding = "utf-8-sig" if found.encoding == "utf-8" else found.encoding
    decoder, ends = codecs.getincrementaldecoder(encoding)(), LineEnds(found.delimiter if found.kind == "csv" else None)
    line = 1
    with pa.input_stream(str(path), compression=found.compression) as stream:
        while block := stream.read(1 << 20):
            try:
                text = ends.unified(decoder.decode(block))
            except UnicodeDecodeError as problem:
                raise DataError(
                    f"{name}, after line {line}: {problem.reason} for {encoding}; give its encoding"
                ) from None
            line += text.count("\n")
            copy.file.write(text.encode())
        copy.file.write(ends.unified(decoder.decode(b"", final=True), final=True).encode())
    copy.file.flush()
    return copy


class LineEnds:
    """Makes all line ends of a CSV text that comes in pieces line feeds, but those within quotes, which are data.

    Without a delimiter it is another kind of text, in which there are none within quotes.
    """

    def __init__(self, delimiter: str | None) -> None:
        self._opening = re.compile("(?!)" if delimiter is None else rf'(?<=[\r\n{re.escape(delimiter)}])"')
        self._quoted = False
        self._before = "\n"  # what stood before the piece: a quote opens only at the start of a cell
        self._held = ""

    def unified(self, text: str, final: bool = False) -> str:
        """The next piece, except for an end of it that only what follows can tell."""
        text = self._before + self._held + text
        kept = text if final else text[: max(len(text.rstrip('\r"')), 1)]
        self._held = text[len(kept) :]
        found, at = [], 1
        while at < len(kept):
            if self._quoted:
                match = INSIDE.match(kept, at)
                stop = match.end() if match else at
                found.append(kept[at : stop + 1])  # with the quote that closes it
                self._quoted = stop == len(kept)
            else:
                opening = self._opening.search(kept, at)
                stop = len(kept) if opening is None else opening.start()
                found.append(kept[at:stop].replace("\r\n", "\n").replace("\r", "\n") + kept[stop : stop + 1])
                self._quoted = opening is not None
            at = stop + 1
        self._before = kept[-1]
        return "".join(found)
