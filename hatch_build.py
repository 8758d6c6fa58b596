"""README as an index shows it, without the files beside it: hatchling calls this while it writes the metadata."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """README with absolute links, or, as long as pyproject.toml has no address of the repository, without links."""

    def update(self, metadata):
        """Put the text into the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if address := metadata.get("urls", {}).get("Repository"):
            release = f"v{metadata['version']}"  # the tag
            text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\g<1>{address}/raw/{release}/", text)
            text = re.sub(r"\]\((?!https?:|#)", f"]({address}/blob/{release}/", text)
        else:
            text = re.sub(r"(?s)!\[.*?\*\n\n", "", text)  # the figure and its caption
            text = re.sub(r"\[([^\]]+)\]\(#[^)]*\)", r"\1", text)
            text = re.sub(r"\[([^\]]+)\]\((?!https?:)([^)#]+)[^)]*\)", r"\1 (`\2`)", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
