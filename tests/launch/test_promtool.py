"""Where promtool is found, and what is said where it can't be had."""

from pathlib import Path

import pytest

from launch import promtool
from launch.problem import Problem


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with nothing on it but what a test puts into its `bin`, and a shell."""
    monkeypatch.setenv("VAR_DIR", str(tmp_path / "var"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("PROMTOOL", raising=False)
    return tmp_path


def test_the_one_that_is_named_then_the_system_s_then_our_own(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert promtool.installed() is None
    own = script(machine / "var" / "bin" / "promtool", "exit 0")
    assert promtool.installed() == str(own)
    system = script(machine / "bin" / "promtool", "exit 0")
    assert promtool.installed() == str(system)
    script(system, "exit 1")
    assert promtool.obtain() == str(own), "one that does not run is none"
    monkeypatch.setenv("PROMTOOL", str(machine / "nowhere"))
    assert promtool.installed() is None


def test_it_is_taken_out_of_debian_s_package(machine: Path) -> None:
    """By an apt whose lists have not been fetched yet, and a dpkg that unpacks one program."""
    lists = machine / "lists"
    script(
        machine / "bin" / "apt-get",
        f"""case "$1" in
            update) : > {lists} ;;
            download) [ -e {lists} ] && : > prometheus_1_amd64.deb ;;
        esac""",
    )
    script(
        machine / "bin" / "dpkg",
        """[ "$1 $2 $3" = "-x prometheus_1_amd64.deb ." ] || exit 1
        /bin/mkdir -p usr/bin
        echo '#!/bin/sh' > usr/bin/promtool
        /bin/chmod +x usr/bin/promtool""",
    )
    found = promtool.obtain()
    assert found == str(machine / "var" / "bin" / "promtool")
    assert [path.name for path in Path(found).parent.iterdir()] == ["promtool"], "nothing else is kept"
    (machine / "bin" / "apt-get").unlink()
    assert promtool.obtain() == found, "it is fetched once"


@pytest.mark.parametrize("apt", ["", "exit 1", "exit 0"], ids=["none", "fails", "brings nothing"])
def test_where_it_can_t_be_had_it_is_said_how(machine: Path, apt: str) -> None:
    if apt:
        script(machine / "bin" / "apt-get", apt)
        script(machine / "bin" / "dpkg", "exit 0")
    with pytest.raises(Problem, match="set PROMTOOL to its path"):
        promtool.obtain()
