# What the three lines of nixosModules.default give: everything up by itself, an operator without root, and
# tokens that nobody else reads.
import json

REPOSITORY = "/var/lib/forge-worker/repositories/app.git"


def alice(words):
    return machine.succeed(f"runuser -u alice -- {words}")


def git(words):
    return machine.succeed(f"cd / && runuser -u forge-worker -- git {words}")


machine.wait_for_unit("forge-gate.service")

with subtest("the Worker waits for its repository, and needs no help once it is there"):
    machine.succeed(
        "install -d -m 0700 -o forge-worker -g forge-worker /var/lib/forge-worker/repositories /tmp/app"
    )
    git("init -q -b main /tmp/app")
    git("-C /tmp/app -c user.name=Op -c user.email=op@example.invalid commit -q --allow-empty -m base")
    git(f"clone -q --bare /tmp/app {REPOSITORY}")
    machine.wait_until_succeeds("systemctl is-active forge-worker.service")
    machine.wait_until_succeeds(
        "runuser -u alice -- forge workers --format json | grep '\"connected\":true'"
    )

with subtest("an operator of the group takes a task to a candidate"):
    base = git(f"--git-dir={REPOSITORY} rev-parse main").strip()
    said = alice(
        f"forge submit --format json --repository app --base {base}"
        " --instruction forty-two --check 'grep -qx forty-two answer.txt'"
    )
    job = json.loads(said.splitlines()[0])["id"]
    alice(f"forge wait {job} --timeout 5m")
    candidate = json.loads(alice(f"forge status {job} --format json").splitlines()[0])["candidate_sha"]
    assert git(f"--git-dir={REPOSITORY} show {candidate}:answer.txt") == "forty-two\n"

with subtest("nobody else is an operator, and tokens outlive a restart"):
    machine.fail("runuser -u mallory -- forge list")
    machine.fail("runuser -u mallory -- cat /var/lib/agent-forge/owner")
    machine.fail("runuser -u alice -- cat /var/lib/agent-forge/worker")
    before = machine.succeed("sha256sum /var/lib/agent-forge/*")
    machine.succeed("systemctl restart agent-forge-tokens.service")
    assert machine.succeed("sha256sum /var/lib/agent-forge/*") == before
    machine.wait_for_unit("forge-gate.service")

with subtest("connections wait while the Gate restarts"):
    machine.succeed(
        "systemctl stop forge-gate.service && systemctl is-active forge-gate.socket",
        "systemctl start --no-block forge-gate.service; curl -fsS http://127.0.0.1:7070/healthz",
    )
    alice("forge list")
    machine.succeed("ss -ltnH | grep -F 127.0.0.1:7070")
    machine.fail("ss -ltnH | grep -F 0.0.0.0:7070")
