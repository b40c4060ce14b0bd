"""What supervisord is told to run."""

from configparser import ConfigParser
from pathlib import Path

import pytest

from launch.options import Options
from launch.problem import Problem
from launch.programs import stack, supervisord_configuration
from launch.run import Run


def configuration(var_dir: Path, **environ: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    programs = stack(Options.read({"VAR_DIR": str(var_dir), **environ}))
    parser.read_string(supervisord_configuration(programs, var_dir))
    return parser


def test_each_worker_with_an_engine_has_a_name_that_it_keeps(tmp_path: Path) -> None:
    told = configuration(tmp_path, GENERATE_WORKERS="3")
    assert told["group:workers"]["programs"] == "answer,generate,generate-2,generate-3"
    commands = [told[f"program:generate{suffix}"]["command"] for suffix in ("", "-2", "-3")]
    names = [command.split("--hostname ")[1].split()[0] for command in commands]
    assert len(set(names)) == 3
    again = configuration(tmp_path, GENERATE_WORKERS="3")
    assert [again[f"program:generate{suffix}"]["command"] for suffix in ("", "-2", "-3")] == commands


def test_one_is_the_default(tmp_path: Path) -> None:
    assert configuration(tmp_path)["group:workers"]["programs"] == "answer,generate"
    with pytest.raises(Problem, match="GENERATE_WORKERS"):
        configuration(tmp_path, GENERATE_WORKERS="none")


def test_all_programs_count_into_one_folder_which_each_run_empties(tmp_path: Path) -> None:
    run = Run(Options.read({"VAR_DIR": str(tmp_path)}))
    folder = Path(run.environ["PROMETHEUS_MULTIPROC_DIR"])
    assert folder.is_relative_to(tmp_path)
    for _ in range(2):
        run._count_anew()
        assert folder.is_dir() and not list(folder.iterdir())
        (folder / "counter_17.db").touch()
