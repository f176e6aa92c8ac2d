"""The page that follows a run, over HTTP: what it shows, what it never writes, and who may read it."""

import contextlib
import http.client
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark.base.errors import UserError
from benchmark.library.watch import address_of, open_watch
from benchmark.library.watch_options import WatchOptions
from benchmark.live.journal import JobFacts, Journal
from benchmark.live.server import Server, host_of, is_loopback
from tests.conftest import run_here
from tests.report.test_report import EVIL, check_structure, made_results

TOKEN = "a-token-of-twenty-ok"


@contextlib.contextmanager
def serving(results: Path, **options: object) -> Iterator[Server]:
    with open_watch(WatchOptions(results=str(results), port=0, **options)) as server:  # type: ignore[arg-type]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: Server, path: str = "/", method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response, text


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    made_results(folder, methods=2, seeds=2)
    return folder


@pytest.fixture(scope="module")
def server(results: Path) -> Iterator[Server]:
    with serving(results) as server:
        yield server


def files_in(folder: Path) -> dict[str, tuple[int, int, int]]:
    stats = {path: path.stat() for path in [folder, *folder.rglob("*")]}
    return {str(path): (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def test_the_page_has_what_the_report_has_and_the_curves(server: Server) -> None:
    response, page = ask(server)
    assert response.status == 200
    check_structure(page.replace('defer=""', ""))
    for text in (
        "No command is running in this folder",
        "Learning curves of made",
        "own mass",
        "made data",
        "Provenance",
    ):
        assert text in page, text
    assert page.count("data-line=") > 8
    _, versions = ask(server, "/versions")
    names = list(json.loads(versions))
    assert names == ["now", "links", "curves", "overview", "task-made"]
    for name in names:
        _, section = ask(server, f"/section?name={name}")
        assert f'data-section="{name}"' in section
        assert section in page


def test_nothing_is_loaded_from_elsewhere_and_no_script_is_in_the_page(server: Server) -> None:
    _, page = ask(server)
    assert set(re.findall(r'<script[^>]* src="([^"]*)"', page)) == {"/report.js", "/live.js"}
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page)
    assert set(re.findall(r"<script(?! src)([^>]*)>", page)) == {' type="application/json" class="data"'}
    for path in ("/report.js", "/live.js"):
        response, text = ask(server, path)
        assert response.headers["Content-Type"].startswith("text/javascript")
        assert '"use strict"' in text


def test_to_watch_writes_nothing(results: Path) -> None:
    before = files_in(results)
    with serving(results) as server:
        for path in ("/", "/versions", "/section?name=task-made"):
            assert ask(server, path)[0].status == 200
    assert files_in(results) == before


def test_jobs_of_a_running_command(results: Path, tmp_path: Path) -> None:
    facts = [JobFacts("made", label, 7, f"made/{number}", 4) for number, label in enumerate(("M0", EVIL, "M1", "M2"))]
    notes = Journal(results, facts, done_before=2)
    row = {"epoch": 0.0, "loss": 0.125, "accuracy": 0.5, "queue_fill": 0.75, "epochs_done": 1, "seconds": 1.0}
    with serving(results) as server:
        before = json.loads(ask(server, "/versions")[1])
        for number, kind, values in ((0, "started", {}), (0, "epoch", row), (1, "started", {})):
            notes.note(f"made/{number}", kind, values, 100.0)
        notes.note("made/2", "failed", {"reason": "OSError: '/home/me/secret/file' is gone"}, 90.0)
        _, section = ask(server, "/section?name=now")
        assert "1 of 4 jobs ended" in section
        assert "2 running · 1 waiting · 1 failed" in section
        for text in ("1/4", "0.125", "0.500", "queue fill 0.75", "2 jobs were done before", "data-left=", "…/file"):
            assert text in section, text
        assert EVIL not in section
        assert "secret" not in section
        changed = json.loads(ask(server, "/versions")[1])
        assert changed["now"] != before["now"]
        assert changed["task-made"] == before["task-made"]
        assert json.loads(ask(server, "/versions")[1])["now"] == changed["now"], "sent only if there is news"
        notes.close()
        assert "It was stopped before its end" in ask(server, "/section?name=now")[1]


def test_a_folder_that_comes_later(tmp_path: Path) -> None:
    with serving(tmp_path / "later") as server:
        assert ask(server)[0].status == 200
        made_results(tmp_path / "later", methods=1, seeds=1, task="other")
        server.content.not_before = 0.0
        assert "task-other" in json.loads(ask(server, "/versions")[1])


def test_headers(server: Server) -> None:
    for path in ("/", "/versions", "/nothing"):
        headers = ask(server, path)[0].headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "Python" not in headers["Server"]


def test_head_is_get_without_a_body(server: Server) -> None:
    head, body = ask(server, method="HEAD")
    assert (head.status, body) == (200, "")
    assert int(head.headers["Content-Length"]) == len(ask(server)[1].encode())


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_reading(server: Server, method: str) -> None:
    response, _ = ask(server, method=method)
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/report.css",
        "/made/m0/id/seed-0/record.json",
        "/section?name=../../etc/passwd",
        "/section?name=",
        "/section",
        "/live.js/..",
        "/report.html",
        "/\\etc",
        "/?x",
    ],
)
def test_a_path_is_a_name_and_no_file(server: Server, path: str) -> None:
    response, text = ask(server, path)
    assert response.status == (200 if path == "/?x" else 404)
    assert "root:" not in text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:9", 200),
        ("LOCALHOST:1", 200),
        ("127.9.9.9", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example:80", 403),
        ("", 403),
        ("[", 403),
        ("localhost@evil.example", 403),
        ("10.0.0.1", 403),
    ],
)
def test_no_other_name_leads_here(server: Server, host: str, status: int) -> None:
    """A web page whose name is made to mean this machine must not read what is here."""
    response, text = ask(server, "/versions", Host=host)
    assert response.status == status
    assert ("task-made" in text) == (status == 200)


def test_a_token_guards_every_path(results: Path) -> None:
    with serving(results, token=TOKEN) as server:
        cookie = f"selbench-{server.server_port}={TOKEN}"
        assert address_of(server) == f"http://localhost:{server.server_port}/?token={TOKEN}"
        for path in ("/", "/versions", "/section?name=now", "/live.js", "/nothing", "/?token=", f"/?token={TOKEN}x"):
            assert ask(server, path)[0].status == 403, path
        for wrong in ("", "selbench-1=x", cookie[:-1], f"{cookie}x", cookie.upper(), "=;=;,", "selbench-é=1"):
            assert ask(server, "/versions", Cookie=wrong)[0].status == 403, wrong
        response, _ = ask(server, f"/?token={TOKEN}")
        assert (response.status, response.headers["Location"]) == (303, "/"), "the address does not keep it"
        assert response.headers["Set-Cookie"] == f"{cookie}; HttpOnly; SameSite=Lax; Path=/"
        for path in ("/", "/versions", "/live.js"):
            assert ask(server, path, Cookie=f"other=1; {cookie}")[0].status == 200


def test_any_other_address_has_a_token(results: Path) -> None:
    with open_watch(WatchOptions(results=str(results), host="0.0.0.0", port=0)) as server:
        assert len(server.guard.token or "") >= 32
        assert f"?token={server.guard.token}" in address_of(server)
        assert server.guard.knows_host("any.name.example")
        assert not server.guard.admits(None)
    with open_watch(WatchOptions(results=str(results), host="0.0.0.0", port=0)) as another:
        assert another.guard.token != server.guard.token


def test_what_means_this_machine() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.1.2.3", "example.org", "", "localhost.example")))
    assert host_of("[::1]:80") == "::1"
    assert host_of("User@Localhost:80") == "localhost"


BAD = [
    (["--port", "70000"], "--port: .* from 0 to 65,535, got '70000': there are no more ports"),
    (["--port", "http"], "--port: expected a whole number from 0 to 65,535, got 'http'"),
    (["--token", "short"], "--token: expected 16 to 200 letters, digits, - or _; leave it out"),
    (["--token", "with spaces and so on"], "--token: expected 16 to 200"),
    (["--host", "999.1.1.1", "--port", "0"], "cannot listen to 999.1.1.1, port 0: .*; name another with --port N"),
    (["--results", "file"], "'file' is a file; name a results folder with --results DIR"),
    (["--results", "memory://nowhere/at-all"], "no command on this machine writes to 'memory://nowhere/at-all'"),
    (["--prot", "1"], "unknown argument '--prot'; did you mean --port"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input(words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    said = run_here("watch", *words)
    assert (said.returncode, said.stdout, said.stderr.count("\n")) == (2, "", 1)
    assert re.search(message, said.stderr), said.stderr


def test_a_port_that_is_taken(server: Server) -> None:
    with pytest.raises(UserError, match=rf"port {server.server_port}: .*in use; name another with --port N"):
        open_watch(WatchOptions(port=server.server_port))
