"""The unit of systemd: well-formed, and closed to what a service does not need. Needs `systemd-analyze`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

UNIT = Path(__file__).parents[2] / "deploy" / "evertally@.service"


def analyzed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)


def test_it_is_closed() -> None:
    said = analyzed("security", "--offline=true", "--no-pager", "--threshold=30", UNIT)
    assert said.returncode == 0, said.stdout + said.stderr
    exposure = re.search(r"Overall exposure level for .*: ([\d.]+) ", said.stdout)
    assert exposure is not None, said.stdout
    assert float(exposure[1]) < 3


def test_it_is_well_formed(tmp_path: Path) -> None:
    """With a command that is there: a misspelt setting, which systemd passes over, is told."""
    command = Path(sys.executable).with_name("evertally")
    unit = tmp_path / "evertally@visits.service"
    unit.write_text(UNIT.read_text().replace("/opt/evertally/bin/evertally", str(command)))
    said = analyzed("verify", "--man=no", unit)
    assert (said.returncode, said.stderr) == (0, ""), said.stderr
    unit.write_text(unit.read_text().replace("ProtectClock=", "ProtectClocks="))
    assert "ProtectClocks" in analyzed("verify", "--man=no", unit).stderr


def test_it_keeps_what_the_service_rests_on() -> None:
    settings = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if re.match(r"[A-Z]\w+=", line))
    needed = {
        "Restart": "on-failure",
        "LimitNOFILE": "65536",
        "LimitCORE": "0",
        "MemorySwapMax": "0",
        "StateDirectoryMode": "0700",
        "UMask": "0077",
        "StateDirectory": "evertally/%i evertally-key/%i",
    }
    assert {name: settings.get(name) for name in needed} == needed
    assert "MemoryDenyWriteExecute" not in settings, "compiled code could not run"
