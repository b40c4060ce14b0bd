from tests.engines.conftest import model_dir

__all__ = ["model_dir"]
