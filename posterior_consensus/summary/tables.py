"""The tables of a summary as files for a spreadsheet."""

from __future__ import annotations

from pathlib import Path

from posterior_consensus.runtime.files import written_whole
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.text import findings


def write_tables(summary: SummaryRecord, folder: Path) -> Path:
    """Write each table to a file of its own and return the folder."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"`folder` must be a directory or a new name; got the file {str(folder)!r}.")
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "clusters": summary.to_dataframe(),
        "items": summary.items.to_dataframe(),
        "convergence": summary.diagnosis.to_dataframe(),
    }
    if summary.links is not None:
        tables["links"] = summary.links.to_dataframe()
        tables["cluster_sizes"] = summary.links.sizes.to_dataframe()
    for name, table in tables.items():
        with written_whole(folder / f"{name}.csv") as new:
            table.to_csv(new, encoding="utf-8-sig")  # by whose mark Excel knows the encoding
    with written_whole(folder / "findings.txt") as new:
        new.write_text("\n".join(findings(summary)) + "\n", encoding="utf-8-sig")
    return folder
