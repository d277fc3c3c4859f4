"""What a scenario's folder holds, and the file tree that a machine starts from.

The folder has `testScript`; `nodes/<name>/`, whose `etc` and `usr` lie over the image's;
`nodes.json` where a machine wants another size; `closure`, one store path a line, where programs
are in the Nix store and the folder itself is not.
"""

import hashlib
import json
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Services of the image that a test has no use for; they would only make it slower.
MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty.target",
    "ssh.service",
    "ssh.socket",
    "systemd-firstboot.service",
    "systemd-logind.service",
    "systemd-networkd.service",
    "systemd-timesyncd.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udevd.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
    "getty@tty1.service",
    "serial-getty@ttyS0.service",
)

AGENT_UNIT = """\
[Unit]
Description=The driver's agent
DefaultDependencies=no
After=systemd-tmpfiles-setup.service systemd-sysusers.service
Conflicts=shutdown.target
Before=shutdown.target

[Service]
ExecStart=/bin/bash /usr/local/lib/e2e/agent.sh
OOMScoreAdjust=-900
"""

# What a dead machine had to say is only on its console, so everything goes there as well.
JOURNAL = """\
[Journal]
Storage=persistent
ForwardToConsole=yes
MaxLevelConsole=info
RateLimitBurst=0
ReadKMsg=no
"""


class ScenarioError(Exception):
    """The folder is no scenario."""


@dataclass(frozen=True)
class Node:
    """One machine of a scenario."""

    name: str
    tree: Path
    # From 1, by sorted name, as the NixOS driver counts.
    number: int
    # MiB, for a machine that does not share the host's.
    memory: int = 1024

    @property
    def address(self) -> str:
        """Its address in the network of the scenario."""
        return f"192.168.1.{self.number}"


@dataclass(frozen=True)
class Scenario:
    """A script and the machines that it drives."""

    script: Path
    nodes: tuple[Node, ...]
    closure: tuple[Path, ...]


def read(folder: Path) -> Scenario:
    """Reads the folder of a scenario."""
    script = folder / "testScript"
    if not script.is_file():
        raise ScenarioError(f"`{script}` is not there")
    trees = sorted(path for path in (folder / "nodes").glob("*") if path.is_dir())
    if not 1 <= len(trees) <= 250:
        raise ScenarioError(f"`{folder}/nodes` has {len(trees)} machines, 1 to 250 are possible")
    for tree in trees:
        if not tree.name.replace("-", "_").isidentifier():
            raise ScenarioError(f"`{tree.name}` is no name of a machine")
    listed = folder / "nodes.json"
    sizes = json.loads(listed.read_text()) if listed.is_file() else {}
    nodes = tuple(
        Node(tree.name, tree, number, sizes.get(tree.name, {}).get("memorySize", 1024))
        for number, tree in enumerate(trees, 1)
    )
    return Scenario(script, nodes, _closure(folder))


def _closure(folder: Path) -> tuple[Path, ...]:
    listed = folder / "closure"
    if listed.is_file():
        lines = listed.read_text().splitlines()
    elif str(folder.resolve()).startswith("/nix/store/"):
        words = ["nix-store", "--query", "--requisites", str(folder.resolve())]
        asked = subprocess.run(words, check=True, capture_output=True, text=True)
        lines = asked.stdout.splitlines()
    else:
        lines = []
    return tuple(sorted(Path(line) for line in lines if line))


def lay(node: Node, nodes: tuple[Node, ...], target: Path) -> None:
    """Writes what `node` has over its image below `target`."""
    for name in ("etc", "usr"):
        (target / name).mkdir(parents=True, exist_ok=True)
        if (node.tree / name).is_dir():
            copy(node.tree / name, target / name)
    hosts = target / "etc/hosts"
    if not hosts.exists():
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{other.address} {other.name}" for other in nodes]
        _write(hosts, "\n".join(lines) + "\n")
    _write(target / "etc/hostname", node.name + "\n")
    # With an id the boot is not the first one, so that nothing is preset or asked.
    _write(target / "etc/machine-id", hashlib.md5(node.name.encode()).hexdigest() + "\n")
    _write(target / "etc/systemd/journald.conf.d/50-e2e.conf", JOURNAL)
    units = target / "etc/systemd/system"
    _write(units / "e2e-agent.service", AGENT_UNIT)
    _link(units / "basic.target.wants/e2e-agent.service", "../e2e-agent.service")
    _link(units / "default.target", "/lib/systemd/system/multi-user.target")
    for name in MASKED:
        _link(units / name, "/dev/null")
    agent = target / "usr/local/lib/e2e/agent.sh"
    agent.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(__file__).with_name("agent.sh"), agent)


def copy(source: Path, target: Path) -> None:
    """Copies a tree with its links; the modes of a store (all read-only) become ordinary ones."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        copied = target / entry.name
        if entry.is_symlink():
            copied.symlink_to(entry.readlink())
        elif entry.is_dir():
            copy(entry, copied)
        else:
            shutil.copyfile(entry, copied)
            runs = entry.stat().st_mode & stat.S_IXUSR
            copied.chmod(0o755 if runs else 0o644)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _link(path: Path, target: str) -> None:
    """Links, unless the scenario has a unit of that name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink() and not path.exists():
        path.symlink_to(target)
