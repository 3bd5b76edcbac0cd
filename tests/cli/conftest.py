import pytest


@pytest.fixture(autouse=True)
def working_directory(tmp_path, monkeypatch):
    """An empty working directory without downloaded data."""
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path
