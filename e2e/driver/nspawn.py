"""Machines as containers of systemd-nspawn, without a systemd on the host.

Runs in mount, network and process namespaces of its own: a fresh view of the control groups, a
bridge that no host interface belongs to, and everything written is in memory.
"""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from .machine import Machine
from .nodes import Node, Scenario, lay
from .shell import Shell
from .watch import Watch

CGROUP = Path("/sys/fs/cgroup")
NETNS = Path("/run/netns")
STALE_SECONDS = 24 * 3600
CLOSE_SECONDS = 5.0


def call(*words: str) -> None:
    """Runs a program of the host that must succeed."""
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


class Nspawn:
    """The backend: what all its machines share."""

    def __init__(self, scenario: Scenario, image: Path, work: Path, watch: Watch) -> None:
        self._scenario = scenario
        self._image = image
        self._work = work
        self._watch = watch
        self._cgroup = CGROUP / f"e2e-{os.urandom(4).hex()}"

    def open(self) -> None:
        """Makes what all machines share; `close` is right after a failure of it too."""
        # Other mounts below, such as those of the first version, would hide the fresh one.
        subprocess.run(["umount", "-R", str(CGROUP)], check=False, stderr=subprocess.DEVNULL)
        call("mount", "-t", "cgroup2", "cgroup2", str(CGROUP))
        for group in CGROUP.glob("e2e-*"):
            # What a run left that was killed; a run beside this one is younger.
            if time.time() - group.stat().st_ctime > STALE_SECONDS:
                remove_cgroup(group)
        self._cgroup.mkdir()
        NETNS.mkdir()
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", "e2e", "type", "bridge")
        call("ip", "link", "set", "e2e", "up")

    def machine(self, node: Node, logs: Path, out: Path) -> Machine:
        """Makes the machine of a node; it is off."""
        folder = self._work / node.name
        for name in ("upper", "overlay", "root", "pipes"):
            (folder / name).mkdir(parents=True)
        lay(node, self._scenario.nodes, folder / "upper")
        layers = f"lowerdir={self._image},upperdir={folder}/upper,workdir={folder}/overlay"
        call("mount", "-t", "overlay", "overlay", "-o", layers, str(folder / "root"))
        for name in ("to", "from"):
            os.mkfifo(folder / "pipes" / name, 0o600)
        self._cable(node)
        group = self._cgroup / node.name
        store = bool(self._scenario.closure)
        return Container(node, folder, group, store, self._watch, logs, out)

    def _cable(self, node: Node) -> None:
        """A network namespace with one interface that leads to the bridge."""
        name, outer = node.name, f"e2e{node.number}"
        call("ip", "netns", "add", name)
        call("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth1", "netns", name)
        call("ip", "link", "set", outer, "master", "e2e", "up")
        call("ip", "-n", name, "link", "set", "lo", "up")
        call("ip", "-n", name, "addr", "add", f"{node.address}/24", "dev", "eth1")
        call("ip", "-n", name, "link", "set", "eth1", "up")

    def close(self) -> None:
        """Leaves no control group behind; the rest goes with the namespaces."""
        until = time.monotonic() + CLOSE_SECONDS
        # What was killed needs a moment to be gone.
        while self._cgroup.exists() and time.monotonic() < until:
            remove_cgroup(self._cgroup)
            time.sleep(0.02)


def remove_cgroup(group: Path) -> None:
    """Removes a control group and those below it, as far as they are empty."""
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)


class Container(Machine):
    """One container."""

    def __init__(
        self,
        node: Node,
        folder: Path,
        group: Path,
        store: bool,
        watch: Watch,
        logs: Path,
        out: Path,
    ) -> None:
        super().__init__(node.name, watch, logs, out)
        self._folder = folder
        self._group = group
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None

    def _boot(self, allow_reboot: bool) -> tuple[subprocess.Popen[bytes], Shell]:
        self._group.mkdir(exist_ok=True)
        # It makes groups of its own below the one that it starts in.
        enter = f'echo $$ >"{self._group}/cgroup.procs" && exec "$@"'
        words = [
            "systemd-nspawn",
            "--quiet",
            "--register=no",
            "--keep-unit",
            f"--machine={self.name}",
            f"--directory={self._folder / 'root'}",
            f"--network-namespace-path={NETNS / self.name}",
            f"--bind={self._folder / 'pipes'}:/run/e2e-pipes",
            "--resolv-conf=off",
            "--timezone=off",
            "--link-journal=no",
            "--console=read-only",
            "--boot",
        ]
        if self._store:
            words.insert(1, "--bind-ro=/nix/store")
        # Opened for both ways a pipe has no end of file; the console tells the end.
        source = os.open(self._folder / "pipes/from", os.O_RDWR | os.O_CLOEXEC)
        sink = os.open(self._folder / "pipes/to", os.O_RDWR | os.O_CLOEXEC)
        self._process = subprocess.Popen(
            ["sh", "-c", enter, "sh", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return self._process, Shell(source, sink, self._watch)

    def release(self) -> None:
        """Kills the container: with its first process every other one ends."""
        self._ending = True
        if self._process is None:
            return
        kill = self._group / "cgroup.kill"
        if kill.exists():
            kill.write_text("1")
        else:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def missing() -> list[str]:
    """Programs that this backend needs and the host lacks."""
    return [name for name in ("systemd-nspawn", "ip", "unshare") if shutil.which(name) is None]
