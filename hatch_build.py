"""What hatchling asks for: README as an index shows it, and compiled kernels with the tag of a wheel that has them."""

import platform
import re
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# Kernels use nothing of the system but functions of its C library that numba finds when it loads them.
PLATFORMS = {"linux": "manylinux_2_17_{}", "darwin": "macosx_11_0_{}", "win32": "win_{}"}


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


class Kernels(BuildHookInterface):
    """Compiled kernels, if `make wheel` has put them into the package; the wheel is pure otherwise."""

    def initialize(self, version, build_data):
        """Put them into a wheel of this Python and platform."""
        folder = "posterior_consensus/kernels/compiled"
        if version == "standard" and Path(self.root, folder).is_dir():
            python = "cp{}{}".format(*sys.version_info)
            build_data["tag"] = f"{python}-{python}-{PLATFORMS[sys.platform].format(platform.machine().lower())}"
            build_data["pure_python"] = False
            build_data["artifacts"].append(f"/{folder}/")
