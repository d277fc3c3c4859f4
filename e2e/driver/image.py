"""The root file system and the kernel of the machines, made once and kept.

A folder of the cache is named after a digest of everything that goes into it, so a changed recipe
makes a new one. What is half made has another name, so that it never passes for whole.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .log import say

PACKAGES = (
    "ca-certificates",
    "curl",
    "dbus",
    "git",
    "iproute2",
    "openssh-client",
    "openssh-server",
    "openssl",
    "systemd",
    "systemd-sysv",
)
# Documentation and translations are a third of the bytes and none of the tests.
EXCLUDED = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")
KERNEL = "linux-image-cloud-amd64"
BUSYBOX = "busybox-static"
# How many of a kind stay: those of this state of the tree and of the one before.
KEPT = 2
# Seconds that no program of the host takes longer than.
LONGEST = 1800
# How often a root file system is tried, and the seconds between.
TRIES = 3
PAUSE = 20


class ImageError(Exception):
    """An image cannot be made."""


def key(recipe: object) -> str:
    """The digest of a recipe."""
    text = json.dumps(recipe, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def suite(os_release: str = "/etc/os-release") -> str:
    """The host's release: programs that were built here find the same C library in the image."""
    fields = dict(
        line.strip().split("=", 1)
        for line in Path(os_release).read_text().splitlines()
        if "=" in line
    )
    name = fields.get("VERSION_CODENAME", "").strip('"')
    if fields.get("ID", "").strip('"') not in ("debian", "ubuntu") or not name:
        raise ImageError(
            "the images are made of the host's own packages; it must be Debian or Ubuntu"
        )
    return name


def root(cache: Path) -> Path:
    """The folder with the root file system."""
    release = suite()
    recipe = {"suite": release, "packages": PACKAGES, "excluded": EXCLUDED}

    def make(part: Path) -> None:
        words = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=directory"]
        words += ["--include=" + ",".join(PACKAGES), '--aptopt=Acquire::Languages "none"']
        words += ['--aptopt=Acquire::Retries "3"', '--aptopt=Acquire::http::Timeout "30"']
        words += [f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED]
        for left in reversed(range(TRIES)):
            try:
                run([*words, release, str(part)])
                return
            except ImageError:
                if left == 0:
                    raise
            # A mirror may be out of reach for a moment.
            shutil.rmtree(part, ignore_errors=True)
            time.sleep(PAUSE)

    return kept(cache, "root", recipe, make)


def root_disk(cache: Path, tree: Path) -> Path:
    """The same as a disk."""
    recipe = {"tree": tree.name, "disk": 1}

    def make(part: Path) -> None:
        part.mkdir()
        disk(tree, part / "disk", journal=False)

    return kept(cache, "disk", recipe, make) / "disk"


def kernel(cache: Path) -> Path:
    """The folder with the unpacked kernel package and busybox."""
    recipe = {"suite": suite(), "packages": [KERNEL, BUSYBOX]}

    def make(part: Path) -> None:
        part.mkdir()
        name = latest_kernel()
        if name is None:
            run(["apt-get", "update", "-q"])
            name = latest_kernel()
        if name is None:
            raise ImageError(f"apt knows no {KERNEL}")
        words = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root"]
        run([*words, name, BUSYBOX], cwd=part)
        for package in part.glob("*.deb"):
            run(["dpkg-deb", "-x", str(package), str(part)])
            package.unlink()

    return kept(cache, "kernel", recipe, make)


def latest_kernel() -> str | None:
    """The package that the kernel's name stands for."""
    words = ["apt-cache", "depends", KERNEL]
    asked = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    names = [line.split()[1] for line in asked.splitlines() if "Depends: linux-image-" in line]
    return names[0] if names else None


def kept(cache: Path, kind: str, recipe: object, make: Callable[[Path], None]) -> Path:
    """The folder of a recipe; `make` fills it if it is not there."""
    path = cache / f"{kind}-{key(recipe)}"
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock"):
        if not path.is_dir():
            say(f"image: making {path.name}")
            begun = time.monotonic()
            part = cache / f"{kind}.part"
            remove(part)
            make(part)
            part.rename(path)
            say(f"image: {path.name} took {time.monotonic() - begun:.0f} s")
        os.utime(path)
        prune(cache, kind)
    return path


def prune(cache: Path, kind: str) -> None:
    """Removes all but the latest used of a kind."""
    found = sorted(cache.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in found[KEPT:]:
        remove(old)


def remove(path: Path) -> None:
    """Removes a folder, if it is there and nothing is mounted in it."""
    if not path.exists():
        return
    if str(path) in Path("/proc/self/mounts").read_text():
        raise ImageError(f"something is mounted below `{path}`; unmount it first")
    shutil.rmtree(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file, so that two runs do not make one image."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def disk(tree: Path, path: Path, size: int | None = None, journal: bool = True) -> None:
    """Makes an ext4 image that holds `tree`, of the size that it needs or of `size` MiB."""
    if size is None:
        used = sum(file.lstat().st_blocks for file in tree.rglob("*")) // 2048
        size = used + used // 4 + 32
    features = [] if journal else ["-O", "^has_journal"]
    words = ["mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", *features, "-E", "root_owner=0:0"]
    run([*words, "-d", str(tree), str(path), f"{size}M"])


def run(words: list[str], cwd: Path | None = None) -> None:
    """Runs a program of the host; what it says is shown only if it fails."""
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired as late:
        raise ImageError(f"`{words[0]}` did not end in {LONGEST} s") from late
    if done.returncode != 0:
        raise ImageError(f"`{words[0]}` failed with status {done.returncode}:\n{done.stdout}")
