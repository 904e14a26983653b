"""The page over HTTP: who may look, what comes with every answer, and that it keeps up."""

from __future__ import annotations

import http.client
import json
import time

import pytest

from dashboard.checkpoints import Query
from evenkeel.dashboard import guard
from evenkeel.dashboard.guard import HEADERS, Access
from evenkeel.errors import InvalidArgumentError

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("served")
    Query(path, names=["secret-name"]).run(4)
    return path


@pytest.fixture(scope="module")
def port(checkpoint, serve):
    with serve(checkpoint) as port:
        yield port


@pytest.fixture(scope="module")
def guarded(checkpoint, serve):
    with serve(checkpoint, Access("0.0.0.0", TOKEN, frozenset({"proxy.example"}))) as port:
        yield port


def get(port, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/", "/page.js", "/plots.js", "/style.css", "/icon.svg", "/api/state", "/metrics"])
def test_every_part_is_served_with_strict_headers(port, path):
    status, headers, body = get(port, path)
    assert status == 200
    assert body
    found = {name.lower(): value for name, value in headers.items()}
    for name, value in HEADERS.items():
        assert found[name.lower()] == value
    assert "access-control-allow-origin" not in found
    assert "server" not in found


def test_the_policy_allows_no_inline_script_and_the_page_has_none(port):
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    page = get(port, "/")[2].decode()
    assert "://" not in page  # nothing is loaded from elsewhere
    assert "style=" not in page
    assert " on" not in "".join(part.split(">")[0].replace(" one", "") for part in page.split("<"))


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/../checkpoint.json", "/static/page.js", "/%2e%2e/pyproject.toml", "/api"]
)
def test_nothing_else_is_served(port, path):
    assert get(port, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_sent(port, method):
    assert get(port, "/api/state", method=method)[0] == 405


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil", "", "[::2]"])
def test_a_page_elsewhere_cannot_have_its_name_resolve_to_us(port, host):
    status, headers, body = get(port, "/api/state", Host=host)
    assert status == 421
    assert b"stages" not in body
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8470", "127.0.0.1:1", "127.8.8.8", "[::1]:8470"])
def test_our_own_names_are_known(port, host):
    assert get(port, "/api/state", Host=host)[0] == 200


def test_beyond_this_machine_addresses_and_given_names_are_known_and_others_are_not():
    access = Access("192.0.2.7", TOKEN, frozenset({"proxy.example"}))
    assert all(access.knows_host(host) for host in ("192.0.2.7:80", "proxy.example", "localhost"))
    assert not any(access.knows_host(host) for host in ("evil.example", None, "proxy.example.evil"))


def test_beyond_this_machine_a_token_is_needed():
    for bound in ("0.0.0.0", "::", "192.0.2.7", "example.org"):
        with pytest.raises(InvalidArgumentError, match="needs a token"):
            Access(bound)
    for bound in ("127.0.0.1", "localhost", "::1", "127.3.2.1"):
        assert Access(bound).token is None
    with pytest.raises(InvalidArgumentError, match="at least 16"):
        Access("0.0.0.0", "short")


@pytest.mark.parametrize("path", ["/", "/api/state", "/metrics", "/page.js", "/nowhere"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": "evenkeel_dashboard=no"},
    ],
    ids=["nothing", "another token", "another scheme", "a made-up cookie"],
)
def test_without_the_token_nothing_is_told(guarded, path, headers):
    status, answered, body = get(guarded, path, **headers)
    assert status == 401
    assert b"stage" not in body
    assert answered["x-frame-options"] == "DENY"


def test_a_program_shows_the_token_in_a_header(guarded):
    assert get(guarded, "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_browser_trades_the_token_for_a_cookie_and_the_address_forgets_it(guarded):
    status, headers, _ = get(guarded, f"/?token={TOKEN}")
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert TOKEN not in cookie
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert get(guarded, "/api/state", Cookie=cookie.partition(";")[0])[0] == 200
    assert get(guarded, f"/?token={TOKEN}x")[0] == 401


def test_the_way_on_from_a_token_never_leads_to_another_host(guarded):
    status, headers, _ = get(guarded, f"//evil.example/?token={TOKEN}")
    assert (status, headers["location"]) == (303, "/evil.example/")


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(guard.hmac, "compare_digest", lambda given, wanted: compared.append(given) or given == wanted)
    access = Access("0.0.0.0", TOKEN)
    assert access.knows([TOKEN])
    assert not access.knows(["x", "y"])
    assert not access.knows([])
    assert set(compared) == {TOKEN.encode(), b"x", b"y"}


def test_what_has_not_changed_is_not_sent_again_and_what_has_is(tmp_path, serve):
    query = Query(tmp_path).run(1)
    with serve(tmp_path) as port:
        _, headers, body = get(port, "/api/state")
        assert json.loads(body)["batch"] == 0
        assert get(port, "/api/state", If_None_Match=headers["etag"])[::2] == (304, b"")
        query.run(1)
        deadline = time.monotonic() + 10
        while get(port, "/api/state", If_None_Match=headers["etag"])[0] == 304:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert json.loads(get(port, "/api/state")[2])["batch"] == 1
        (tmp_path / "checkpoint.json").rename(tmp_path / "gone")
        while not json.loads(get(port, "/api/state")[2])["trouble"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        state = json.loads(get(port, "/api/state")[2])
        assert "does not exist" in state["trouble"]
        assert state["batch"] == 1
        assert b"evenkeel_up 0.0" in get(port, "/metrics")[2]


def test_masked_keys_are_nowhere(checkpoint, port, serve):
    assert b"secret-name" in get(port, "/api/state")[2]
    with serve(checkpoint, mask_keys=True) as masked:
        for path in ("/api/state", "/metrics", "/"):
            assert b"secret-name" not in get(masked, path)[2]
