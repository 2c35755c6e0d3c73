"""The session log keeps what it took: over rotation, a kill at any moment, and a disk that is full for a while."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rtbrain.errors import SinkError, SourceError
from rtbrain.protocol import Encoder
from rtbrain.sinks.session_check import check_session, read_session, record_of, salvage_session, session_files
from rtbrain.sinks.session_log import SessionLog, line_of
from tests.unit.sinks.examples import ALL, STATE, STATUS

PATIENCE_S = 30.0


def write(folder: Path, n: int, **options) -> list[bytes]:
    encoder = Encoder()
    frames = [encoder.frame(ALL[i % len(ALL)], float(i)) for i in range(n)]
    with SessionLog(folder, **options) as log:
        for frame in frames:
            log.write(frame)
    assert (log.written, log.dropped, log.trouble) == (n, 0, "")
    return frames


def messages(folder: Path) -> list[dict]:
    return [record["message"] for record in read_session(folder) if "message" in record]


class TestWriting:
    def test_every_message_in_order_over_several_files(self, tmp_path):
        frames = write(tmp_path / "new" / "log", 500, max_file_bytes=20_000)
        folder = tmp_path / "new" / "log"
        assert messages(folder) == [json.loads(frame.partition(b" ")[2]) for frame in frames]
        assert len(session_files(folder)) > 5
        report = check_session(folder)
        assert report.sound
        assert (report.records, report.cut, len(report.runs)) == (500, [], 1)
        assert report.topics == {"meta": 125, "token": 125, "state": 125, "status": 125}

    def test_every_line_is_json_by_itself(self, tmp_path):
        write(tmp_path, 8)
        (path,) = session_files(tmp_path)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert all(set(line) == {"crc32", "record"} for line in lines)

    def test_runs_do_not_touch_each_others_files(self, tmp_path):
        write(tmp_path, 10)
        before = {path: path.read_bytes() for path in session_files(tmp_path)}
        write(tmp_path, 10)
        assert all(path.read_bytes() == content for path, content in before.items())
        assert len(check_session(tmp_path).runs) == 2

    def test_the_check_tells_how_each_run_ended(self, tmp_path):
        ends = (
            [STATE],
            [replace(STATUS, trouble="the disk is full"), STATE],
            [STATE, replace(STATUS, trouble="stopped")],
        )
        for messages in ends:
            with SessionLog(tmp_path) as log:
                encoder = Encoder()
                for message in messages:
                    log.write(encoder.frame(message, 0.0))
        report = check_session(tmp_path)
        assert sorted(report.runs.values()) == ["", "", "stopped"]  # a word amid the run was not its last
        said = [line for line in report.lines() if line.startswith("run ")]
        assert sorted(line.partition(": ")[2] for line in said) == [
            "its last word is: stopped",
            *["no last word: it was killed, or runs still"] * 2,
        ]

    def test_what_is_taken_is_on_disk_within_a_second_without_closing(self, tmp_path):
        encoder = Encoder()
        log = SessionLog(tmp_path)
        log.write(encoder.frame(STATE, 0.0))
        deadline = time.monotonic() + PATIENCE_S
        while not messages(tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        log.close()

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(SinkError, match="no session log can be written"):
            SessionLog(tmp_path / "file" / "log")


KILLED = """
import sys, time
from pathlib import Path
from rtbrain.protocol import Encoder
from rtbrain.sinks.session_log import SessionLog
from tests.unit.sinks.examples import STATE
log, encoder = SessionLog(Path(sys.argv[1]), max_file_bytes=200_000), Encoder()
while True:
    log.write(encoder.frame(STATE, time.monotonic()))
    print(time.monotonic(), flush=True)
    time.sleep(0.0005)
"""


class TestSuddenEnds:
    @pytest.mark.slow
    @pytest.mark.live  # by the clock: others that fill the disk meanwhile would hold the log up
    def test_kill_loses_a_second_at_most_and_harms_nothing(self, tmp_path):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        while not any(tmp_path.glob("*-00002.jsonl")):  # somewhere in the third file
            assert time.monotonic() < deadline
            taken_s = float(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        # Read to the end: what was taken after the last line that was looked at counts too.
        taken_s = max([taken_s, *map(float, process.stdout.read().splitlines()[:-1])])
        process.wait()
        process.stdout.close()
        report = check_session(tmp_path)
        assert report.sound
        kept = messages(tmp_path)
        assert [each["seq"] for each in kept] == list(range(len(kept)))
        assert kept[-1]["published_s"] > taken_s - 1.0

    def test_a_cut_at_any_byte_leaves_the_rest_sound(self, tmp_path):
        write(tmp_path, 12)
        (path,) = session_files(tmp_path)
        content = path.read_bytes()
        for size in range(content.index(b"\n") + 1, len(content), 97):
            path.write_bytes(content[:size])
            report = check_session(tmp_path)
            assert report.sound
            assert report.records == content[:size].count(b"\n") - 1
            assert bool(report.cut) == (not content[:size].endswith(b"\n"))

    @pytest.mark.slow
    def test_a_full_disk_is_told_and_nothing_is_lost_once_there_is_room(self, tmp_path):
        """A limit on the size of files makes writes fail half-way, as a full disk does."""
        program = """
import resource, sys, time
from pathlib import Path
from rtbrain.protocol import Encoder
from rtbrain.sinks.session_log import SessionLog
from tests.unit.sinks.examples import STATE
log, encoder = SessionLog(Path(sys.argv[1])), Encoder()
deadline = time.monotonic() + 30
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
for i in range(50):
    log.write(encoder.frame(STATE, float(i)))
while not log.trouble:
    assert time.monotonic() < deadline
    time.sleep(0.01)
print(log.trouble)
assert log.waiting > 0
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
while log.waiting or log.trouble:
    assert time.monotonic() < deadline
    time.sleep(0.01)
log.close()
print(log.written, log.dropped)
"""
        pytest.importorskip("resource")
        command = [sys.executable, "-c", program, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "cannot be written" in done
        assert done.endswith("50 0\n")
        report = check_session(tmp_path)
        assert report.sound
        assert (report.cut, report.records) == ([], 50)


class TestChecking:
    def test_every_flipped_byte_is_found(self, tmp_path):
        write(tmp_path, 6)
        (path,) = session_files(tmp_path)
        content = path.read_bytes()
        for at in range(0, len(content) - 1, 41):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            assert not check_session(tmp_path).sound, at

    def test_removed_lines_and_files_are_missed(self, tmp_path):
        write(tmp_path, 100, max_file_bytes=5000)
        files = session_files(tmp_path)
        lines = files[1].read_bytes().splitlines(keepends=True)
        files[1].write_bytes(b"".join(lines[:2] + lines[3:]))
        assert any("records" in each for each in check_session(tmp_path).missing)
        files[1].unlink()
        assert any("file(s) 1 to 1" in each for each in check_session(tmp_path).missing)

    def test_salvage_keeps_the_sound_lines(self, tmp_path):
        frames = write(tmp_path / "log", 20)
        (path,) = session_files(tmp_path / "log")
        lines = path.read_bytes().splitlines(keepends=True)
        lines[5] = lines[5].replace(b'"seq":', b'"SEQ":')
        path.write_bytes(b"".join(lines)[:-9])
        report = check_session(tmp_path / "log")
        assert not report.sound
        assert len(report.damaged) == len(report.cut) == 1
        assert salvage_session(tmp_path / "log", tmp_path / "sound.jsonl") == 18
        kept = [json.loads(line)["message"] for line in (tmp_path / "sound.jsonl").read_text().splitlines()]
        whole = [json.loads(frame.partition(b" ")[2]) for frame in frames]
        assert kept == whole[:4] + whole[5:19]
        with pytest.raises(SourceError, match="exists"):
            salvage_session(tmp_path / "log", tmp_path / "sound.jsonl")

    def test_lines_of_another_form(self):
        assert record_of(line_of(b'{"n":1}')) == {"n": 1}
        for line in (b"", b"\n", b"{}\n", line_of(b"[1]"), line_of(b"not json"), line_of(b'{"n":1}')[:-1]):
            assert record_of(line) is None

    def test_a_folder_without_a_log(self, tmp_path):
        with pytest.raises(SourceError, match="no session log"):
            check_session(tmp_path)
