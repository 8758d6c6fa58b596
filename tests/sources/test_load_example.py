"""The posteriors and tables that come with the package."""

from importlib.metadata import version
from importlib.resources import files

import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc

FOLDER = files("posterior_consensus") / "example_data"


def test_the_list_has_every_file_and_each_loads_as_it_says():
    listed = pc.load_example()
    licences = (FOLDER / "LICENCES.txt").read_text(encoding="utf-8")
    stored = [file.name for file in FOLDER.iterdir() if file.name != "LICENCES.txt"]
    assert sorted(file.partition(".")[0] for file in stored) == sorted(listed.index)
    assert not [file for file in stored if file not in licences]
    for name, kind in listed["returns"].items():
        assert f'``"{name}"``' in pc.load_example.__doc__
        found = pc.load_example(name)
        if kind == "posterior":
            assert {"chain", "draw"} <= set(found["posterior"].sizes)
        else:
            assert isinstance(found, pd.DataFrame) and kind == "table"


def test_a_posterior_is_what_the_installed_arviz_reads():
    az = pytest.importorskip("arviz")
    found = pc.load_example("two_answers")
    read = az.from_netcdf(str(FOLDER / "two_answers.nc"))
    assert type(found) is type(read)
    assert isinstance(found, xr.DataTree) is not version("arviz").startswith("0.")
    for group in ("posterior", "four_species", "observed_data"):
        assert found[group].identical(read[group])


@pytest.mark.parametrize("name", ["galaxy", ["galaxies"], 1])
def test_an_unknown_name_is_refused_with_those_there_are(name):
    with pytest.raises(ValueError, match="`name`.*'galaxies', .*'cells'; got"):
        pc.load_example(name)


def test_tables_have_the_rows_of_what_they_describe():
    records, fields = pc.load_example("records"), pc.load_example("record_fields")
    assert list(records["posterior"]["record"].values) == list(fields.index)
    pairs, persons = pc.load_example("pairs"), pc.load_example("persons")
    assert set(pairs["unique_id_l"]) | set(pairs["unique_id_r"]) <= set(persons.index)
    assert pc.load_example("cells").filter(regex=r"^(leiden|hdbscan)_").shape == (700, 160)
