"""What is read of the API server's audit log."""

from pathlib import Path

from tests.soak.audit import written

WHOLE = '{"verb":"get","user":"a"}\n{"verb":"list","user":"b"}\n'


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(f'{WHOLE}{{"verb":"wat')

    assert [entry["verb"] for entry in written(log)] == ["get", "list"]
    assert [entry["verb"] for entry in written(log, '"user":"b"')] == ["list"]


def test_older_files_of_a_log_come_first(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    (tmp_path / "audit-2026.log").write_text(WHOLE)
    log.write_text('{"verb":"delete"}\n')

    assert [entry["verb"] for entry in written(log)] == ["get", "list", "delete"]
