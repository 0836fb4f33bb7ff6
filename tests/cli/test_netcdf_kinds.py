import pytest
import xarray as xr

from attractor.cli.session import ExitCode
from attractor.files.netcdf_kinds import CAPTURED, RUN
from attractor.heads.audit.result import KIND as AUDIT
from attractor.heads.monitor.head_monitor import KIND as MONITORED


@pytest.mark.parametrize(
    ("command", "attributes", "what", "taker"),
    [
        ("audit", {"kind": MONITORED}, "the records of a HeadMonitor", "heads.load_records"),
        ("audit", {"kind": AUDIT}, "what an audit found", "`attractor compare`"),
        ("audit", {"format": RUN}, "a run", "`attractor verify`"),
        ("verify", {"format": CAPTURED}, "captured heads", "`attractor audit`"),
    ],
)
def test_a_file_for_another_command_says_what_it_is(
    run_json, tmp_path, command, attributes, what, taker
):
    xr.Dataset({"a": 1}, attrs=attributes).to_netcdf(tmp_path / "file.nc", engine="h5netcdf")
    found, result = run_json(command, "file.nc")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["problem"] == f"file.nc holds {what}"
    assert taker in found["error"]["remedy"]
