"""The README as package indexes show it: addresses in place of paths, which lead nowhere there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def resolve_links(text: str, repository: str | None, version: str) -> str:
    """Return Markdown whose links to files lead to a version in the repository, or are plain text if there is none."""
    folders = {"": f"{repository}/blob/v{version}", "!": f"{repository}/raw/v{version}"}
    return LINK.sub(lambda m: f"{m[1]}[{m[2]}]({folders[m[1]]}/{m[3]})" if repository else m[2], text)


class ReadmeHook(MetadataHookInterface):
    """Hook of hatchling that sets the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = resolve_links(text, metadata.get("urls", {}).get("Repository"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
