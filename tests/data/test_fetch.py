"""Downloads from a local server: mirrors, checks, and no partial files."""

import gzip
import threading
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fake_data import fake_mnist, store

from ptncn.data import DATASETS, DataError
from ptncn.data.download import fetch, look_up


class Server:
    """Serves `/mirror/file` from a dict of (status, body) and records the requests."""

    def __init__(self):
        self.responses, self.requests = {}, []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self.path)
                status, body = server.responses.get(self.path, (404, b"not found"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body) + (1000 if status == 206 else 0)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=partial(self.http.serve_forever, 0.01))
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    yield server
    server.close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def dataset(server):
    """A small MNIST on two mirrors: `first` is empty, `second` has every file."""
    dataset, contents = fake_mnist()
    files = []
    for file, content in zip(dataset.files, contents, strict=True):
        name = file.path.split("/")[1]
        server.responses[f"/second/{name}"] = 200, gzip.compress(content)
        files.append(replace(file, urls=(f"{server.url}/first/{name}", f"{server.url}/second/{name}")))
    return replace(dataset, files=tuple(files))


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


FILES = [f"mnist/{name}" for name in sorted(file.path.split("/")[1] for file in DATASETS["mnist"].files)]


BAD_RESPONSES = {
    "an error": (500, b""),
    "another content": (200, gzip.compress(b"something else")),
    "a truncated gzip": (200, gzip.compress(b"x" * 1000)[:-5]),
    "a page": (200, b"<html>blocked</html>"),
    "a connection that breaks": (206, b"half"),
}


class TestMirrors:
    def test_the_next_mirror_is_tried_if_one_lacks_the_file(self, dataset, cache):
        lines = []
        fetch(dataset.files, progress=True, report=lines.append)
        assert files_in(cache) == FILES
        assert look_up(dataset.files).correct
        assert sum("404" in line for line in lines) == 4

    @pytest.mark.parametrize("response", BAD_RESPONSES.values(), ids=BAD_RESPONSES)
    def test_the_next_mirror_is_tried_if_one_gives(self, server, dataset, cache, response):
        for name in FILES:
            server.responses[name.replace("mnist", "/first")] = response
        fetch(dataset.files)
        assert files_in(cache) == FILES
        assert str(look_up(dataset.files)) == "verified (SHA-256)"

    def test_the_next_mirror_is_tried_if_one_does_not_exist(self, dataset, cache):
        files = [replace(file, urls=("http://127.0.0.1:9/x", file.urls[1])) for file in dataset.files]
        fetch(files)
        assert look_up(dataset.files).correct

    def test_uncompressed_content_is_compressed_in_the_cache(self, server, dataset, cache):
        for name in FILES:
            url = name.replace("mnist", "/second")
            server.responses[url] = 200, gzip.decompress(server.responses[url][1])
        fetch(dataset.files)
        assert look_up(dataset.files).correct
        assert all((cache / name).read_bytes()[:2] == b"\x1f\x8b" for name in FILES)


class TestAtomicity:
    def test_if_no_mirror_has_the_file_the_error_names_file_and_mirrors(self, server, dataset, cache):
        server.responses.clear()
        with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz: no mirror") as caught:
            fetch(dataset.files)
        assert "/first/" in str(caught.value)
        assert "/second/" in str(caught.value)
        assert not (cache / "mnist").exists()

    def test_files_fetched_before_an_error_are_kept(self, server, dataset, cache):
        lost = server.responses.pop("/second/t10k-images-idx3-ubyte.gz")
        with pytest.raises(DataError, match="t10k-images"):
            fetch(dataset.files)
        assert files_in(cache) == [FILES[i] for i in (2, 3)]
        server.responses["/second/t10k-images-idx3-ubyte.gz"] = lost
        server.requests.clear()
        fetch(dataset.files)
        assert files_in(cache) == FILES
        assert {request.split("/")[2][:4] for request in server.requests} == {"t10k"}

    def test_a_cache_that_cannot_be_written(self, dataset, cache):
        cache.write_text("a file where the folder should be")
        with pytest.raises(DataError, match=r"cache.*cannot be written.*PTNCN_DATA"):
            fetch(dataset.files)
        assert cache.read_text() == "a file where the folder should be"

    def test_an_interruption_leaves_no_partial_file(self, dataset, cache, monkeypatch):
        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr("ptncn.data.download.check_file", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch(dataset.files)
        assert not (cache / "mnist").exists()


class TestExistingFiles:
    def test_a_wrong_file_is_an_error_and_not_changed(self, dataset, cache):
        mine = cache / FILES[2]
        mine.parent.mkdir(parents=True)
        mine.write_bytes(b"mine")
        with pytest.raises(DataError, match=r"train-images.*--replace"):
            fetch(dataset.files)
        assert mine.read_bytes() == b"mine"
        assert files_in(cache) == [FILES[2]]

    def test_replace_overwrites_a_wrong_file(self, dataset, cache):
        mine = cache / FILES[2]
        mine.parent.mkdir(parents=True)
        mine.write_bytes(b"mine")
        fetch(dataset.files, replace=True)
        assert look_up(dataset.files).correct

    def test_replace_keeps_the_old_file_if_no_mirror_has_the_right_one(self, server, dataset, cache):
        server.responses.clear()
        mine = cache / FILES[2]
        mine.parent.mkdir(parents=True)
        mine.write_bytes(b"mine")
        with pytest.raises(DataError, match="no mirror"):
            fetch(dataset.files, replace=True)
        assert mine.read_bytes() == b"mine"
        assert files_in(cache) == [FILES[2]]

    def test_the_status_distinguishes_missing_incomplete_wrong_and_correct(self, cache):
        dataset, contents = fake_mnist()
        assert str(look_up(dataset.files)) == "not there"
        store(cache, dataset, contents)
        assert str(look_up(dataset.files)) == "verified (SHA-256)"
        (cache / FILES[0]).unlink()
        assert str(look_up(dataset.files)) == "incomplete: 3 of 4 files"
        (cache / FILES[1]).write_bytes(b"x")
        assert str(look_up(dataset.files)) == "wrong: t10k-labels-idx1-ubyte.gz"


def test_every_dataset_of_the_paper_has_a_mirror_and_a_checksum():
    downloaded = {name: dataset for name, dataset in DATASETS.items() if dataset.files}
    assert set(downloaded) == {"mnist", "notmnist", "fashion-mnist", "ptb", "ptb-stream", "bouncing-mnist"}
    for dataset in downloaded.values():
        assert len(dataset.files) == {"ptb": 3, "ptb-stream": 3, "bouncing-mnist": 1}.get(dataset.name, 4)
        for file in dataset.files:
            assert file.sha256 or file.md5
            assert len(file.urls) > 1 or dataset.name == "bouncing-mnist"
            assert all(url.rsplit("/", 1)[1] in file.path for url in file.urls)
