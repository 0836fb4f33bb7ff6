import importlib
import sys

from attractor.geometry.loading import load_geometry
from attractor.support.loaded import leave_out


def test_a_module_of_one_s_own_finds_the_library_that_commands_leave_out(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "dask", raising=False)
    leave_out("dask")
    (tmp_path / "own_norm_with_dask.py").write_text(
        "import importlib.util\n"
        "from attractor.geometry import Frobenius\n"
        "if importlib.util.find_spec('dask'):\n"
        "    OWN = Frobenius()\n"
    )
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    assert load_geometry("own_norm_with_dask:OWN").name == "frobenius"


def test_a_file_beside_a_module_of_one_s_own_takes_the_place_of_no_other(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    (tmp_path / "wave.py").write_text("raise RuntimeError('this is not the module of Python')")
    (tmp_path / "own_norm_of_waves.py").write_text(
        "import wave\nfrom attractor.geometry import Frobenius\nOWN = Frobenius()\n"
    )
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    before = sys.path[:]
    assert load_geometry("own_norm_of_waves:OWN").name == "frobenius"
    assert sys.path == before
