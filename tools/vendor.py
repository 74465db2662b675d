"""Download pinned third-party browser files into static/vendor, and those of the tests into tests/vendor.

    python tools/vendor.py          download, build, write the manifest
    python tools/vendor.py check    compare the files with the manifest

Only this tool needs npm (and esbuild through npx, for the editor): its results are committed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "static" / "vendor"
TEST_VENDOR = ROOT / "tests" / "vendor"  # never served
MANIFEST = "manifest.json"
ESBUILD = "esbuild@0.28.2"


@dataclass(frozen=True, slots=True)
class Package:
    """An npm package. `integrity` is the registry's SHA-512; `files` maps paths in the package to target paths."""

    name: str
    version: str
    licence: str
    integrity: str
    files: dict[str, str]


# Rendered by {% icon %} in evalsite/templatetags/show.py.
ICONS = [
    "archive",
    "arrow-right",
    "check",
    "chevron-down",
    "circle-check",
    "circle-x",
    "copy",
    "database",
    "download",
    "file-text",
    "folder",
    "history",
    "info",
    "list-checks",
    "log-out",
    "pause",
    "pencil",
    "play",
    "plug",
    "plus",
    "refresh-cw",
    "ruler",
    "scale",
    "search",
    "settings",
    "square",
    "star",
    "triangle-alert",
    "trophy",
    "upload",
    "user-cog",
    "users",
    "x",
]
PACKAGES = (
    Package(
        "htmx.org",
        "2.0.11",
        "0BSD",
        "Thx/WtpeOQqSrqBCw/A1cwGJGg4UrVa3+sW0GmrM3p4gJgO89ecH4qtbnyzDDWFvBTqjnIMCgELTNt636dtamA==",
        {"dist/htmx.min.js": "htmx/htmx.min.js", "LICENSE": "htmx/LICENSE"},
    ),
    Package(
        "prism-code-editor",
        "5.4.0",
        "MIT",
        "8y4SdQxwHa/lnxIbFf2w8N2D1OwxcskDRw774ov4XEEa1e5alqqrAZk08YXgaxisc1RuJdFbCTI+4tU3Plljqw==",
        {
            "dist/layout.css": "prism-code-editor/layout.css",
            "LICENSE": "prism-code-editor/LICENSE",
        },
    ),
    Package(
        "lucide-static",
        "0.544.0",
        "ISC",
        "2PkMTYcjQkIzYbd5u2g7UtRaNDP7dLQT107MmYBdvnZZCO3Vj0nqH6HA5AkUS2Era8D1ITb/UxrOkfdH/qN2Ag==",
        {"LICENSE": "lucide/LICENSE", **{f"icons/{name}.svg": f"lucide/{name}.svg" for name in ICONS}},
    ),
)
TEST_PACKAGES = (
    Package(
        "axe-core",
        "4.14.1",
        "MPL-2.0",
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        {"axe.min.js": "axe-core/axe.min.js", "LICENSE": "axe-core/LICENSE"},
    ),
)
FOLDERS = {VENDOR: PACKAGES, TEST_VENDOR: TEST_PACKAGES}
BUILT = {"prism-code-editor/editor.js": "prism-code-editor"}


def main(arguments: list[str]) -> int:
    """Fetch everything, or with `check` print the differences and return 1 if there are any."""
    if arguments == ["check"]:
        problems = differences()
        print("\n".join(problems) or "what is vendored is as the manifests say")
        return 1 if problems else 0
    with tempfile.TemporaryDirectory() as folder:
        for home, packages in FOLDERS.items():
            for package in packages:
                fetch(package, Path(folder), home)
        bundle_editor(Path(folder))
    write_manifests()
    return 0


def fetch(package: Package, folder: Path, target_folder: Path) -> None:
    """Download a package, verify its checksum, unpack it below `folder`/node_modules and copy its files."""
    subprocess.run(["npm", "pack", "--silent", f"{package.name}@{package.version}"], cwd=folder, check=True)
    archive = folder / f"{package.name}-{package.version}.tgz"
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != package.integrity:
        raise SystemExit(f"{package.name} {package.version}: sha512-{digest} is not the pinned one")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    home = folder / "node_modules" / package.name
    home.parent.mkdir(exist_ok=True)
    shutil.move(folder / "unpacked" / "package", home)
    for source, target in package.files.items():
        (target_folder / target).parent.mkdir(parents=True, exist_ok=True)
        # browser developer tools would request the source map, which is not shipped
        text = (home / source).read_text().split("\n//# sourceMappingURL=")[0].rstrip("\n") + "\n"
        (target_folder / target).write_text(text)


def bundle_editor(folder: Path) -> None:
    """Bundle the parts of the editor we use into one ES module."""
    shutil.copy(Path(__file__).parent / "editor.entry.mjs", folder / "entry.mjs")
    target = VENDOR / "prism-code-editor" / "editor.js"
    command = [
        "npx",
        "--yes",
        ESBUILD,
        "entry.mjs",
        "--bundle",
        "--minify",
        "--format=esm",
        "--target=es2022",
    ]
    subprocess.run([*command, "--legal-comments=inline", f"--outfile={target}"], cwd=folder, check=True)


def vendored(packages: tuple[Package, ...]) -> dict[str, Package]:
    """{target path: package} of every file copied or built from these packages."""
    by_name = {package.name: package for package in packages}
    copied = {target: package for package in packages for target in package.files.values()}
    return copied | {target: by_name[name] for target, name in BUILT.items() if name in by_name}


def write_manifests() -> None:
    for folder, packages in FOLDERS.items():
        entries = {
            target: {
                "package": p.name,
                "version": p.version,
                "licence": p.licence,
                "sha256": sha256(folder / target),
            }
            for target, p in sorted(vendored(packages).items())
        }
        (folder / MANIFEST).write_text(json.dumps(entries, indent=2) + "\n")


def differences() -> list[str]:
    """Vendored files that differ from their folder's manifest: changed, missing, or not listed."""
    return [problem for folder in FOLDERS for problem in folder_differences(folder)]


def folder_differences(folder: Path) -> list[str]:
    listed = json.loads((folder / MANIFEST).read_text())
    present = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {MANIFEST}
    problems = [f"{name}: not in the manifest" for name in sorted(present - listed.keys())]
    problems += [f"{name}: missing" for name in sorted(listed.keys() - present)]
    for name in sorted(present & listed.keys()):
        if sha256(folder / name) != listed[name]["sha256"]:
            problems.append(f"{name}: changed since it was fetched")
    return problems


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
