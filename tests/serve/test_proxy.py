"""The service behind nginx, with the configuration of `deploy/` but for names, ports and certificates."""

import http.client
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deciban import BayesClassifier
from deciban.datasets import weather
from tests import PATIENCE
from tests.serve.processes import Answer, ask, free_port, serving

CONFIGURATION = Path(__file__).parent.parent.parent / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
TOKENS = {"read": "a-token-that-may-only-read", "learn": "a-token-that-may-learn-too"}
ROW = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}

# What is around a configuration of conf.d: everything nginx writes goes to the folder of the test.
AROUND = """
daemon off; pid nginx.pid; error_log errors.log warn; worker_processes 1; {user}
events {{ worker_connections 256; }}
http {{
    access_log off; types {{ text/html html; }} default_type application/octet-stream;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
{inside}
}}
"""

pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="there is no nginx here: install Debian's `nginx-light`"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here, which makes the certificate"),
]


@dataclass(frozen=True)
class Proxy:
    """nginx in front of a service: its addresses with and without TLS."""

    address: str
    plain: str
    context: ssl.SSLContext

    def ask(self, path: str, content: object = None, role: str = "", **headers: str) -> Answer:
        token = {"Authorization": f"Bearer {TOKENS[role]}"} if role else {}
        return ask(self.address + path, content, {**token, **headers}, self.context)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy")
    BayesClassifier(tune=None).fit(weather(), "play").save(folder / "weather.dcb")
    tokens = folder / "tokens"
    tokens.write_text("".join(f"{role} {token}\n" for role, token in TOKENS.items()))
    tokens.chmod(0o600)
    with serving(folder / "weather.dcb", "--learn", "--token-file", str(tokens)) as address:
        secure, plain = free_port(), free_port()
        certificate = make_certificate(folder)
        inside = adapted(CONFIGURATION.read_text(), address, secure, plain, folder)
        (folder / "nginx.conf").write_text(AROUND.format(inside=inside, user=user_line()))
        command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "errors.log"]
        subprocess.run([*command, "-t"], check=True, capture_output=True)
        with subprocess.Popen(command) as nginx:
            try:
                found = Proxy(f"https://localhost:{secure}", f"http://127.0.0.1:{plain}", trusting(certificate))
                wait_for(found)
                yield found
            finally:
                nginx.terminate()


def adapted(text: str, service: str, secure: int, plain: int, folder: Path) -> str:
    """The configuration with other ports and certificates; each replacement must find something."""
    changes = {
        r"server 127\.0\.0\.1:8000;": f"server {service.removeprefix('http://')};",
        r"listen 80;\n *listen \[::\]:80;": f"listen 127.0.0.1:{plain};",
        r"listen 443 ssl http2;\n *listen \[::\]:443 ssl http2;": f"listen 127.0.0.1:{secure} ssl http2;",
        r"server_name bayes\.example\.com;": "server_name localhost;",
        r"/etc/ssl/certs/bayes\.example\.com\.pem": str(folder / "certificate.pem"),
        r"/etc/ssl/private/bayes\.example\.com\.key": str(folder / "key.pem"),
    }
    for pattern, new in changes.items():
        text, number = re.subn(pattern, new, text)
        assert number, pattern
    return text


def user_line() -> str:
    """Workers of nginx stay who we are, where root would become somebody who cannot write to the test's folder."""
    return "user root;" if Path("/proc/self").stat().st_uid == 0 else ""


def make_certificate(folder: Path) -> Path:
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "certificate.pem"


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def wait_for(proxy: Proxy) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            assert proxy.ask("/health/ready").json == {"ready": True, "problems": []}
            return
        except OSError:
            assert time.monotonic() < end, "nginx does not start"
            time.sleep(0.05)


def test_rows_are_predicted_and_learned_with_the_right_token(proxy: Proxy) -> None:
    assert proxy.ask("/predict", [ROW]).status == 401
    before = proxy.ask("/predict", [ROW], "read").json["rows"][0]["probabilities"]["yes"]
    sent = {"rows": [ROW], "labels": ["yes"], "ids": ["today"]}
    assert proxy.ask("/learn", sent, "read").status == 403
    assert proxy.ask("/learn", sent, "learn").json["rows"] == [{"id": "today", "result": "learned"}]
    assert proxy.ask("/learn", sent, "learn").json["rows"] == [{"id": "today", "result": "already learned"}]
    assert proxy.ask("/predict", [ROW], "read").json["rows"][0]["probabilities"]["yes"] > before


def test_the_page_comes_with_its_policy_and_compressed(proxy: Proxy) -> None:
    page = proxy.ask("/", None, "", **{"Accept-Encoding": "gzip"})
    assert page.status == 200
    assert page.headers["content-encoding"] == "gzip"
    assert "script-src 'sha256-" in page.headers["content-security-policy"]
    assert page.headers["strict-transport-security"] == "max-age=31536000"


def test_what_the_page_asks_as_a_browser_does(proxy: Proxy) -> None:
    browser = {"Origin": proxy.address, "Sec-Fetch-Site": "same-origin"}
    scorer = proxy.ask("/model/scorer", None, "read", **browser)
    assert scorer.json["format"] == "deciban model"
    again = proxy.ask("/model/scorer", None, "read", **browser, **{"If-None-Match": scorer.headers["etag"]})
    assert again.status == 304


def test_a_body_beyond_the_bound_is_refused_at_the_door(proxy: Proxy) -> None:
    assert proxy.ask("/predict", b" " * (17 << 20), "read").status == 413
    nearly = b'[{"outlook": "' + b"x" * (15 << 20) + b'"}]'
    assert proxy.ask("/predict", nearly, "read").status == 200


def test_figures_are_not_for_those_outside(proxy: Proxy) -> None:
    assert proxy.ask("/metrics", None, "learn").status == 404


def test_who_comes_without_tls_is_sent_on(proxy: Proxy) -> None:
    host, port = proxy.plain.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    connection.request("GET", "/model?x=1", headers={"Host": "localhost"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Location"]) == (308, "https://localhost/model?x=1")
    connection.close()


def test_too_many_requests_of_one_address_are_told_so(proxy: Proxy) -> None:
    host, port = proxy.address.removeprefix("https://").split(":")
    connection = http.client.HTTPSConnection(host, int(port), timeout=PATIENCE, context=proxy.context)
    statuses = []
    for _ in range(600):  # on one connection, far faster than is allowed
        connection.request("GET", "/health/live")
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    assert statuses[:100] == [200] * 100
    assert set(statuses) == {200, 429}
