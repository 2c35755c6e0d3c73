import subprocess
import sys

import pytest

from rtbrain.lsl_scope import is_machine_scoped


@pytest.mark.parametrize(
    ("content", "limited"),
    [
        ("[multicast]\nResolveScope = machine\n", True),
        ("[multicast]\nresolvescope=Machine\n", True),
        ("[multicast]\nResolveScope = link\n", False),
        ("[lab]\nSessionID = x\n", False),
        ("", False),
        ("no section\n", False),
    ],
)
def test_the_labs_own_configuration_counts(content, limited, tmp_path, monkeypatch):
    path = tmp_path / "lsl_api.cfg"
    path.write_text(content)
    monkeypatch.setenv("LSLAPICFG", str(path))
    assert is_machine_scoped() is limited


def test_without_one_streams_are_kept_here_if_asked(tmp_path):
    program = "from rtbrain.lsl_scope import *; print(is_machine_scoped(), keep_on_this_machine(), is_machine_scoped())"
    env = {"HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True", "True"], done.stderr


def test_liblsl_is_quiet_and_reaches_as_far_as_before(tmp_path):
    program = (
        "from rtbrain.lsl_scope import *; keep_quiet(); import pylsl\n"
        "pylsl.StreamInfo('x', 'y', 1, 0.0, 'string', 'z').as_xml(); pylsl.resolve_byprop('name', 'none', 1, 0.1)\n"
        "print(is_machine_scoped())"
    )
    env = {"HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["False"], "")
