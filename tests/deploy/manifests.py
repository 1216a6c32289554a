"""``make manifests``: the chart with its default values, as plain manifests."""

import re
import sys
from typing import Final

from tests.deploy.helm import MANIFESTS, NAMESPACE, rendered

HEAD: Final = "# Made from deploy/chart/ringleaf by `make manifests`.\n"
FOLDER: Final = f"""\
{HEAD}apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""
_SOURCE: Final = re.compile(
    r"^# Source: ringleaf/templates/(\S+)\.yaml\n", re.MULTILINE
)
_HELM: Final = re.compile(
    r"^ *(app\.kubernetes\.io/managed-by|helm\.sh/chart|helm\.sh/resource-policy): .*\n"
    r"|^ *# Without it all PodGroups and Queues .*\n|^  annotations:\n(?=    #|spec)",
    re.MULTILINE,
)


def manifests() -> dict[str, str]:
    """File name, below the folder of the manifests → text."""
    files = {"00-namespace.yaml": FOLDER}
    for name, text in _split(rendered()).items():
        files[f"{name}.yaml"] = text
    values = ("crds.install=true", "crds.withoutLookup=true")
    definitions = _split(rendered(*values))["definitions"]
    files["definitions/volcano.yaml"] = definitions
    files["summary/summary.yaml"] = _split(rendered("summary.enabled=true"))["summary"]
    return files


def _split(text: str) -> dict[str, str]:
    """Template → its documents, without what only Helm reads."""
    files: dict[str, str] = {}
    for document in re.split(r"^---\n", text, flags=re.MULTILINE):
        if (found := _SOURCE.search(document)) is None:
            continue
        body = _HELM.sub("", _SOURCE.sub("", document)).strip("\n")
        known = files.get(found[1])
        files[found[1]] = f"{known}---\n{body}\n" if known else f"{HEAD}{body}\n"
    return files


def main() -> int:
    """Write the files anew, and remove those that are none any more."""
    files = manifests()
    for old in MANIFESTS.rglob("*.yaml"):
        if str(old.relative_to(MANIFESTS)) not in files:
            old.unlink()
    for name, text in files.items():
        path = MANIFESTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(files)} files in {MANIFESTS}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
