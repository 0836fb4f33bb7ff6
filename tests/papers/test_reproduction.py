import json

import pytest
import xarray as xr

from attractor.errors import FileFormatError, InvalidInputError
from attractor.papers.drawing import draw
from attractor.papers.registry import get_figure
from attractor.papers.reproduction import reproduce_figure
from attractor.provenance import embed, read_provenance

FIGURE = "max-margin/global-and-local"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(get_figure(FIGURE), tmp_path_factory.mktemp("figures"))


def test_a_figure_comes_out_the_same(drawn):
    found = reproduce_figure(
        drawn.files["png"], read_provenance(drawn.files["png"]), drawn.provenance.arguments
    )
    assert found.same and not found.changed
    assert found.compared == len(drawn.data.variables)


def test_changed_data_are_named(drawn, tmp_path):
    other = drawn.data.copy(deep=True)
    other["path"][0, 0, 0, 3] += 0.5
    other = other.drop_vars("scores")
    file = tmp_path / "other.nc"
    other.to_netcdf(file, engine="h5netcdf")
    embed(file, drawn.provenance)
    found = reproduce_figure(file, drawn.provenance, drawn.provenance.arguments)
    assert not found.same
    assert set(found.differing) == {"path", "scores"}
    assert found.differing["path"].startswith("2 of")
    assert "is new" in found.differing["scores"]


def test_the_data_must_be_beside_the_picture(drawn, tmp_path):
    alone = tmp_path / "alone.png"
    alone.write_bytes(drawn.files["png"].read_bytes())
    with pytest.raises(InvalidInputError, match=r"alone\.nc"):
        reproduce_figure(alone, drawn.provenance, drawn.provenance.arguments)


def test_damaged_data_are_refused(drawn, tmp_path):
    damaged = tmp_path / "damaged.nc"
    damaged.write_bytes(b"no data")
    with pytest.raises(FileFormatError, match="damaged"):
        reproduce_figure(damaged, drawn.provenance, drawn.provenance.arguments)


def test_data_of_another_version_are_computed_again(drawn):
    stored = drawn.files["nc"]
    with xr.open_dataset(stored, engine="h5netcdf") as data:
        contents = json.loads(data.attrs["provenance"])
    contents["version"] = "0.0.1"
    embed(stored, type(drawn.provenance).from_json(json.dumps(contents)))
    again = draw(get_figure(FIGURE), stored.parents[1])
    assert again.computed
    assert read_provenance(stored) == drawn.provenance
