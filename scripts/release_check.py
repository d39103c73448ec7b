"""Build the files of a release, check them as users will have them, and write them to dist/.

1. The files that git tracks are copied twice, to folders with other names, times and rights. From each copy, the wheel
   and the source distribution are built, and from each source distribution a wheel: all bytes must be equal.
2. twine checks the metadata and the long description.
3. The wheel and the source distribution are installed with the oldest and the newest Python of this machine, each in an
   environment of its own, and a program that uses the package runs there, outside the checkout. The environment of the
   wheel contains only what its metadata requires.
4. The SBOM, in the format of CycloneDX, lists what that environment contains.

With `--tag v1.2.3`, the version of pyproject.toml must be that of the tag, the changelog must have a section of it with
a date, and tests/project/signatures.txt the signatures of the release.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import changelog
import dependencies
import signatures

import newest_python

PROJECT = Path(__file__).resolve().parent.parent
DIST = PROJECT / "dist"
LOCK = PROJECT / "requirements" / "run.txt"

#: Uses the package without the checkout: an informer, on the server for tests.
SMOKE = """
import asyncio, importlib.metadata, importlib.resources, sys
import aioinformer
from aioinformer.testing import ApiServer

async def main():
    async with ApiServer() as server, aioinformer.SharedInformerFactory(server.url) as factory:
        namespaces = factory.core.v1.namespaces.lister()
        await factory.wait_for_cache_sync(timeout=30)
        return [each.metadata.name for each in namespaces.list()]

assert "default" in asyncio.run(main())
package = importlib.resources.files(aioinformer)
assert (package / "py.typed").is_file()
assert package.is_relative_to(sys.prefix), f"{package} is not the installed package"
assert importlib.metadata.version("aioinformer") == sys.argv[1]
"""


class NotReady(Exception):
    """A check has failed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default="", help="the tag of the release, such as v1.2.3")
    parser.add_argument("--tools", type=Path, required=True, help="the folder of the programs twine and cyclonedx-py")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="release-") as folder:
            check(arguments.tag, arguments.tools.absolute(), Path(folder))
    except (NotReady, ValueError) as error:
        sys.exit(f"The release is not ready: {error}")


def check(tag: str, tools: Path, scratch: Path) -> None:
    """Build and check everything, and write dist/.

    Raises:
        NotReady: a check has failed.
        ValueError: the changelog has no notes for the tag.
    """
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    section = changelog.sections()[0]
    notes = section.text
    if tag:
        if tag != f"v{version}":
            raise NotReady(f"the tag is {tag}, but pyproject.toml has version {version}")
        notes = changelog.notes(version)
        if signatures.LISTING.read_text() != signatures.render(signatures.signatures()):
            raise NotReady("run `python scripts/signatures.py --record`: the listing is not that of this release")
    say(f"Building version {version} twice")
    files = build(scratch)
    say("Metadata and long description")
    run(tools / "twine", "check", "--strict", *files)
    environment = scratch
    for name, python in interpreters().items():
        for file in files:
            say(f"{file.name} on Python {name}")
            environment = scratch / f"{name}{file.suffix}"
            install(file, python, environment)
            smoke(environment, version, scratch)
    say("SBOM")
    sbom = scratch / f"aioinformer-{version}.cdx.json"
    wheel_environment = environment.with_suffix(".whl")
    write_sbom(tools, wheel_environment, sbom)
    write_dist([*files, sbom], notes)


def build(scratch: Path) -> list[Path]:
    """Return the wheel and the source distribution.

    Raises:
        NotReady: two builds differ.
    """
    when = run("git", "log", "-1", "--format=%ct", show=False).strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when}
    first = build_copy(scratch / "a", 0o022, environment)
    second = build_copy(scratch / "another", 0o077, environment)
    for one, other in zip(first, second, strict=True):
        if one.name != other.name or one.read_bytes() != other.read_bytes():
            raise NotReady(f"two builds of {one.name} differ: compare {one} and {other}")
        say(f"{one.name}: {one.stat().st_size:,} bytes, SHA-256 {sha256(one)}")
    return first


def build_copy(folder: Path, umask: int, environment: dict[str, str]) -> list[Path]:
    """Return the wheel and the source distribution of a copy of the checkout, both built in `folder`.

    Raises:
        NotReady: a wheel that is built from the source distribution differs from that of the checkout.
    """
    source, output = folder / "source", folder / "dist"
    before = os.umask(umask)
    try:
        for name in run("git", "ls-files", "-z", show=False).split("\0")[:-1]:
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PROJECT / name, target)
        hatchling = [sys.executable, "-m", "hatchling", "build", "-d", output]
        run(*hatchling, folder=source, environment=environment, show=False)
        (sdist,) = output.glob("*.tar.gz")
        (wheel,) = output.glob("*.whl")
        unpacked = folder / "unpacked"
        shutil.unpack_archive(sdist, unpacked, filter="data")
        again = folder / "again"
        hatchling = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", again]
        run(*hatchling, folder=next(unpacked.iterdir()), environment=environment, show=False)
    finally:
        os.umask(before)
    if (again / wheel.name).read_bytes() != wheel.read_bytes():
        raise NotReady(
            f"the wheel of the source distribution differs from {wheel}: compare it with {again / wheel.name}"
        )
    return [wheel, sdist]


def interpreters() -> dict[str, str]:
    """Return the oldest and the newest supported Python of this machine, by version; the oldest first.

    Raises:
        NotReady: the oldest supported one is missing.
    """
    minors = newest_python.supported()
    found = {newest_python.version_of(python)[:2]: python for python in newest_python.candidates(minors)}
    versions = sorted(version for version in found if version[1:] and version[1] in minors)
    oldest = (3, min(minors))
    if oldest not in versions:
        raise NotReady(f"Python {oldest[0]}.{oldest[1]}, the oldest supported one, does not start on this machine")
    return {f"{major}.{minor}": found[major, minor] for major, minor in (oldest, versions[-1])}


def install(file: Path, python: str, environment: Path) -> None:
    """Install a file of the release in a new environment, with the locked dependencies.

    The environment of a wheel keeps only what the wheel and its command line require.
    """
    run(python, "-m", "venv", environment)
    pip = [environment / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    run(*pip, "install", "--require-hashes", "--requirement", LOCK)
    run(*pip, "install", "--no-index", "--no-deps", "--no-build-isolation", file)
    if file.suffix == ".whl":
        (site_packages,) = environment.glob("lib/python*/site-packages")
        found = dependencies.installed(site_packages)
        needed = dependencies.required(found, "aioinformer", ["cli"])
        run(*pip, "uninstall", "--yes", *sorted(found.keys() - needed - {"aioinformer", "pip"}), "pip")


def smoke(environment: Path, version: str, folder: Path) -> None:
    """Run the package of an environment, outside the checkout."""
    programs = environment / "bin"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KUBE"))}
    run(programs / "python", "-W", "error", "-c", SMOKE, version, folder=folder, environment=clean)
    shown = run(programs / "aioinformer", "--version", folder=folder, environment=clean, show=False)
    if version not in shown:
        raise NotReady(f"`aioinformer --version` prints {shown.strip()!r} instead of {version}")
    demo = run(programs / "aioinformer", "demo", "--duration", "3", folder=folder, environment=clean, show=False)
    if not demo.strip():
        raise NotReady("`aioinformer demo --duration 3` prints nothing")


def write_sbom(tools: Path, environment: Path, path: Path) -> None:
    """Write the SBOM of an environment: the same bytes for the same packages."""
    python = environment / "bin" / "python"
    options = ["--pyproject", PROJECT / "pyproject.toml", "--mc-type", "library", "--output-reproducible"]
    run(tools / "cyclonedx-py", "environment", *options, "--output-format", "JSON", "--output-file", path, python)


def write_dist(files: list[Path], notes: str) -> None:
    """Write dist/ again: the files of the release, their checksums, and the notes."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for file in files:
        shutil.copyfile(file, DIST / file.name)
    sums = [f"{sha256(file)}  {file.name}\n" for file in files]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    (DIST / "NOTES.md").write_text(notes)
    say(f"dist/ has {', '.join(sorted(each.name for each in DIST.iterdir()))}")


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def say(text: str) -> None:
    print(f"== {text}", flush=True)


def run(*command: object, folder: Path = PROJECT, environment: dict[str, str] | None = None, show: bool = True) -> str:
    """Run a program, and return what it prints.

    Raises:
        NotReady: it failed; the error has its output.
    """
    words = [str(each) for each in command]
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise NotReady(f"{' '.join(words)[:200]} failed:\n{ended.stdout}{ended.stderr}")
    if show:
        print(ended.stdout, end="", flush=True)
    return ended.stdout


if __name__ == "__main__":
    main()
