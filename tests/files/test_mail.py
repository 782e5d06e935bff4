"""Mail as it comes: well written, broken, and random bytes."""

import io
import mailbox
from email.message import EmailMessage
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from deciban.sources.mail import Mail, mail_kind, messages, read_mail
from deciban.sources.plain_text import decoded, text_of_html

HEAD = b"From: Ann <ann@example.org>\nSubject: hello\n"
LINE = b"From ann@example.org Thu Aug 22 12:36:23 2002\n"


def text(body: bytes, *fields: bytes) -> str:
    return read_mail(HEAD + b"".join(field + b"\n" for field in fields) + b"\n" + body).text


def parts(kind: bytes, *inner: bytes) -> bytes:
    """A message, or a part of one, with these parts."""
    content = b"".join(b"--mark\n" + one + b"\n" for one in inner)
    return b"Content-Type: multipart/" + kind + b'; boundary="mark"\n\n' + content + b"--mark--\n"


PLAIN = b"Content-Type: text/plain\n\nplain words\n"
MARKUP = b"Content-Type: text/html\n\n<p>shown words</p>\n"


def test_a_plain_message_has_its_three_columns() -> None:
    assert read_mail(HEAD + b"\nOne line.\r\nAnother.\n\n") == Mail(
        "hello", "Ann <ann@example.org>", "One line.\nAnother."
    )
    assert read_mail(b"Date: today\n\nNo more.") == Mail(None, None, "No more.")
    assert read_mail(b"Subject:\nFrom: a\n\n") == Mail("", "a", "")
    assert read_mail(b"") == Mail(None, None, "")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"plain", "plain"),
        (b"=?utf-8?q?caf=C3=A9_au_lait?=", "café au lait"),
        (b"=?ISO-8859-1?Q?caf=E9?= now", "café now"),
        (b"=?utf-8?b?w6k=?= =?utf-8?b?w6A=?=", "éà"),
        (b"=?utf-8?q?h=C3?=\n =?UTF-8?q?=A9?=", "hé"),  # a character that is cut in two
        (b"=?utf-8*en?q?one?= =?latin-1?q?=E9?=", "oneé"),
        (b"a =?utf-8?q?b?= c", "a b c"),
        (b"folded\n  and\r\n\tfolded", "folded and folded"),
        (b"=?utf-8?b?w6k?=", "é"),  # without its padding
        (b"=?utf-8?b?w6!k=?=", "é"),  # with a strange sign
        (b"=?utf-8?b?w?=", ""),  # nothing that could be read
        (b"=?nonsense?q?caf=C3=A9?=", "café"),
        (b"=?utf-8?q?caf=E9?=", "café"),  # it lies about its charset
        (b"=?utf-8?x?abc?= =?utf-8?q?never closed", "=?utf-8?x?abc?= =?utf-8?q?never closed"),
        (b"raw caf\xc3\xa9 and more", "raw café and more"),
        (b"raw caf\xe9", "raw café"),
    ],
)
def test_subjects_are_decoded(written: bytes, meant: str) -> None:
    assert read_mail(b"From: a\nSubject: " + written + b"\nTo: b\n\nx").subject == meant


@pytest.mark.parametrize(
    ("how", "written", "meant"),
    [
        (b"quoted-printable", b"caf=C3=A9 =\nau lait=3D", "café au lait="),
        (b"quoted-printable", b"broken =ZZ and =", "broken =ZZ and"),
        (b"base64", b"Y2Fmw6k=", "café"),
        (b"BASE64 ", b"Y2Fm\nw6k", "café"),
        (b"base64", b"Y2Fmw6k=Y2Fmw6k=", "cafécafé"),
        (b"base64", b"Y2F\xffmw6k*=", "café"),
        (b"base64", b"Y2Fmw6kgY", "café "[:-1]),
        (b"8bit", "café".encode(), "café"),
        (b"8bit", b"caf\xe9 \x93quoted\x94", "café “quoted”"),
        (b"nonsense", b"words", "words"),
        (b"x-uuencode", b"begin 644 a\nnonsense", "begin 644 a\nnonsense"),
    ],
)
def test_bodies_are_decoded(how: bytes, written: bytes, meant: str) -> None:
    assert text(written, b"Content-Transfer-Encoding: " + how) == meant


@pytest.mark.parametrize(
    ("charset", "written", "meant"),
    [
        (b"utf-8", "naïve".encode(), "naïve"),
        (b"iso-8859-1", b"na\xefve \x80", "naïve €"),
        (b'"koi8-r"', "да".encode("koi8-r"), "да"),
        (b"gb2312", "你好".encode("gb18030"), "你好"),
        (b"us-ascii", "naïve".encode(), "naïve"),
        (b"utf-8", b"na\xefve", "naïve"),
        (b"no-such-thing", "naïve".encode(), "naïve"),
        (b"zlib", b"words", "words"),
        (b"unicode_escape", b"a\\qb \\ud800", "a\\qb \\ud800"),
        (b"utf-7", b"+2AA-words", None),
        (b"\xff\x00", b"words", "words"),
        (b"a" * 10_000, b"words", "words"),
    ],
)
def test_charsets_are_what_they_say_where_that_can_be(charset: bytes, written: bytes, meant: str | None) -> None:
    found = text(written, b"Content-Type: text/plain; charset=" + charset)
    assert found == meant or (meant is None and "words" in found)
    found.encode()


def test_what_says_the_same_is_read_once_and_plain_text_is_preferred() -> None:
    assert read_mail(HEAD + parts(b"alternative", MARKUP, PLAIN)).text == "plain words"
    assert read_mail(HEAD + parts(b"alternative", b"Content-Type: text/plain\n\n \n", MARKUP)).text == "shown words"
    assert read_mail(HEAD + parts(b"alternative", b"Content-Type: image/png\n\nx", MARKUP)).text == "shown words"
    inner = parts(b"related", MARKUP).replace(b"mark", b"inside")
    assert read_mail(HEAD + parts(b"alternative", inner)).text == "shown words"


def test_all_parts_of_a_mixed_message_are_read_but_attachments() -> None:
    attached = b"Content-Type: text/plain\nContent-Disposition: attachment; filename=x.txt\n\nattached\n"
    picture = b"Content-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n"
    assert read_mail(HEAD + parts(b"mixed", MARKUP, attached, picture, PLAIN)).text == "shown words\nplain words"


def test_a_message_in_a_message_is_read() -> None:
    forwarded = (
        b"Content-Type: message/rfc822\nContent-Disposition: attachment\n\nSubject: =?utf-8?q?=C3=A9?=\n\ninner\n"
    )
    assert read_mail(HEAD + parts(b"mixed", PLAIN, forwarded)).text == "plain words\né\ninner"


def test_html_is_known_whatever_it_is_called() -> None:
    assert text(b"<HTML><body>a<br>b</body></HTML>") == "a\nb"
    assert text(b"1 < 2 and <b> is bold") == "1 < 2 and <b> is bold"


@pytest.mark.parametrize(
    "raw",
    [
        HEAD + b"Content-Type: multipart/mixed; boundary=never\n\nread me",
        HEAD + b"Content-Type: multipart/mixed\n\nread me",
        HEAD + b"Content-Type: multipart/mixed; boundary=mark\n\n--mark\n\nread me",
        HEAD + b"Content-Type: text/plain; charset*" + b"9" * 5000 + b"*=x\n\nread me",
        HEAD + b"Content-Type: ;;;===\"\n\nread me",
        HEAD + b"Content-Type: text/\xff; charset=\xff\nContent-Disposition: \xff\n\nread me",
        HEAD + b"this is no field\n\nread me",
        HEAD.replace(b"\n", b"\r\n") + b"\r\nread me",
        HEAD.replace(b"\n", b"\r") + b"\rread me",
        b"\n\n\xef\xbb\xbf" + HEAD + b"\nread me",
        (HEAD + b"\nread me").decode().encode("utf-16"),
        LINE + HEAD + b"\nread me",
    ],
)  # fmt: skip
def test_broken_messages_are_read_as_far_as_they_go(raw: bytes) -> None:
    found = read_mail(raw)
    assert "read me" in found.text
    assert (found.subject, found.sender) == ("hello", "Ann <ann@example.org>")


def test_parts_are_found_where_the_boundary_is_not_said_or_wrong() -> None:
    for said in (b"", b"; boundary=other"):
        raw = HEAD + parts(b"alternative", MARKUP, PLAIN).replace(b'; boundary="mark"', said)
        assert read_mail(raw).text == "plain words"
    assert text(b"-- \nme\n-----\nmore", b"Content-Type: multipart/mixed") == "-- \nme\n-----\nmore"


def test_parts_in_parts_without_end_are_no_end() -> None:
    nested = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (k, k) for k in range(2_000))
    assert "read me" in read_mail(HEAD + nested + b"\nread me").text
    assert "read me" in read_mail(b"Content-Type: message/rfc822\n\n" * 2_000 + b"\nread me").text


FIELDS = [
    "Content-Type: text/html; charset=utf-8",
    "Content-Type: multipart/mixed; boundary=x",
    "Content-Type: multipart/alternative; boundary*0*=x",
    "Content-Type: message/rfc822",
    "Content-Transfer-Encoding: base64",
    "Content-Transfer-Encoding: quoted-printable",
    "Content-Transfer-Encoding: x-uuencode",
    "Content-Disposition: attachment; filename*=utf-8''%ff",
    "Subject: =?utf-8?b?",
    "--x",
    "--x--",
    "",
    "begin 644 a",
    "From a@b Thu Aug 22 12:36:23 2002",
    "<html><p>&#1234567890123;&#xd800;",
]


@given(st.binary(max_size=400))
def test_random_bytes_are_some_mail(raw: bytes) -> None:
    check(raw)


@given(st.lists(st.sampled_from([field.encode() for field in FIELDS]) | st.binary(max_size=30), max_size=12))
def test_what_looks_like_mail_is_some_mail(lines: list[bytes]) -> None:
    check(b"\n".join(lines))


def check(raw: bytes) -> None:
    """Everything is read, as text that Arrow takes."""
    for found in [read_mail(raw), read_mail(HEAD + raw), *map(read_mail, messages(io.BytesIO(raw)))]:
        for cell in (found.subject, found.sender, found.text):
            assert cell is None or "\0" not in cell
            (cell or "").encode()
    mail_kind(raw)


@given(st.binary(max_size=200), st.sampled_from([None, "utf-16", "koi8-r", "nonsense", "utf-7"]))
def test_any_bytes_are_some_text(raw: bytes, encoding: str | None) -> None:
    decoded(raw, encoding).encode()


# HTML


def test_html_is_what_it_shows() -> None:
    markup = (
        "<!DOCTYPE html><title>Head</title><style>p { color: red }</style><SCRIPT a='>'>if (1 < 2) '</p>'</script >"
        "<p title='a > b'>V<b>i</b>ag<!-- not > this -->ra &amp; &eacute;&#65;&nbsp;x</p>y<br/>z"
        "<td>one</td><td>two</td><unknown>in</unknown>line 1 < 2 <![if !mso]>kept<![endif]> &xyzzy; &#9999999999999999;"
    )
    shown = "Head\nViagra & éA x\ny\nz\none\ntwo\ninline 1 < 2 kept &xyzzy; �"
    assert text_of_html(markup) == shown


class Known(HTMLParser):
    """The text between tags by Python's own parser."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=["Cc", "Cs"]), max_size=20)


@given(st.lists(st.tuples(st.sampled_from(["b", "i", "font", "A"]), words, words, st.booleans()), max_size=6))
def test_well_written_html_is_read_as_python_reads_it(elements: list[tuple[str, str, str, bool]]) -> None:
    markup = "".join(
        f'<{tag} title="{escape(value)}">{escape(inner)}</{tag}>' + ("<!-- & -->" if comment else "")
        for tag, value, inner, comment in elements
    )
    known = Known()
    known.feed(markup)
    known.close()
    assert text_of_html(markup).split() == "".join(known.found).split()


@pytest.mark.parametrize(
    "sign", ["<a ", "<", "<!--", "<a b='", "</", "<a b=", "<script></script", '<a b=">', "&#", "<!["]
)
def test_html_that_is_never_closed_takes_no_longer(sign: str) -> None:
    """Python's own parser would take hours."""
    text_of_html(sign * 100_000)


# mbox


def bodies() -> list[EmailMessage]:
    made = []
    for number, body in enumerate(
        [
            "Hello,\n\nFrom the beginning I thought so.\n",
            "\nFrom here to there\nFrom ann@example.org Thu Aug 22 12:36:23 2002\nFrom: not a field\n",
            ">From quoted\n>>From quoted twice\n",
            "",
            "From\n\nFrom \n\n\n",
            "café\n",
        ]
    ):
        message = EmailMessage()
        message["From"], message["Subject"] = f"a{number}@example.org", f"número {number}"
        message.set_content(body)
        made.append(message)
    return made


def test_an_mbox_says_what_its_messages_say_alone(tmp_path: Path) -> None:
    """Written by Python's own mailbox, which quotes lines that begin with From."""
    box = mailbox.mbox(tmp_path / "a.mbox")
    for message in bodies():
        box.add(message)
    box.close()
    with open(tmp_path / "a.mbox", "rb") as file:
        found = [read_mail(raw) for raw in messages(file)]
    expected = [read_mail(bytes(message)) for message in bodies()]
    expected[2] = Mail(
        expected[2].subject, expected[2].sender, "From quoted\n>From quoted twice"
    )  # the box is not sure
    assert found == expected


def test_a_sentence_separates_nothing_and_a_missing_blank_line_joins_nothing() -> None:
    first = HEAD + b"\nbody\n\nFrom what I hear: no.\nFrom ann on Thu Aug 22 12:36 2002\nhe wrote\n"
    found = list(messages(io.BytesIO(LINE + first + LINE + HEAD + b"\nsecond\n")))
    assert [read_mail(raw).text for raw in found] == [
        "body\n\nFrom what I hear: no.\nFrom ann on Thu Aug 22 12:36 2002\nhe wrote",
        "second",
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_may_end_in_two_ways(end: bytes) -> None:
    raw = (LINE + HEAD + b"\none\n\n" + LINE + HEAD + b"\ntwo\n").replace(b"\n", end)
    assert [read_mail(one).text for one in messages(io.BytesIO(raw))] == ["one", "two"]


def test_an_mbox_without_separators_is_one_message() -> None:
    assert [read_mail(one).text for one in messages(io.BytesIO(HEAD + b"\none\n"))] == ["one"]
    assert list(messages(io.BytesIO(b"\n\n"))) == []


def test_an_mbox_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is yielded before the next is read, and of an endless one no more is kept than is useful."""
    monkeypatch.setattr("deciban.sources.mail.MOST_BYTES", 1 << 10)
    raw = LINE + HEAD + b"\n" + b"word " * 10_000 + b"\n" + b"more\n" * 10_000 + LINE + HEAD + b"\nsecond\n" * 9_000
    file = io.BytesIO(raw)
    found = messages(file)
    assert len(next(found)) < 60_000
    assert file.tell() < len(raw) // 2 + 60_000
    assert len(next(found)) < 2_000


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (LINE + HEAD, "mbox"),
        (LINE + b"no field", None),
        (b"From here to eternity at 10:00 in 2002\n\nx", None),
        (b"Received: from a\n\tby b\n", "mail"),
        (b"Return-Path: <a@b>\r\nDelivered-To: c\r\n", "mail"),
        (b"\xef\xbb\xbfX-Mailer: y\nSubject: z\n", "mail"),
        (b"Subject: notes\n\nwords", "mail"),
        (b"To: whom it may concern\nHello", None),
        (b"Dear: reader\nSubject: x\n", None),
        (b"", None),
    ],
)
def test_mail_is_known_by_its_first_lines(start: bytes, kind: str | None) -> None:
    assert mail_kind(start) == kind
