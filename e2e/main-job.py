# Gate, Worker and operator: from a coding task to a commit in the operator's hands, over TLS with an
# authority made here, and again while the Worker and then the Gate are restarted in the middle of a job.
# Secrets go from the operator to the others through ssh, never through this script.
import json

PKI = "/srv/pki"
STATE = "/var/lib/forge-worker"
REPOSITORY = f"{STATE}/repositories/app.git"
CANDIDATES = "refs/agent-forge/candidates"


def submit(instruction, check):
    said = operator.succeed(
        "forge submit --format json --repository app --repo-path /srv/app --rev main"
        f" --instruction '{instruction}' --check '{check}'"
    )
    return json.loads(said.splitlines()[0])["id"]


def forge(words):
    return json.loads(operator.succeed(f"forge {words} --format json").splitlines()[0])


def hold(name):
    """Submits a job that is under way and does not end before `release`."""
    job = submit(f"hold {name} {name}-is-done", f"grep -qx {name}-is-done answer.txt")
    worker.wait_for_file(f"{STATE}/started-{name}")
    assert forge(f"status {job}")["status"] == "leased"
    return job


def release(name):
    worker.succeed(f"touch {STATE}/go-{name}")


def succeeded_once(job):
    """Insists on one success with one candidate, and returns the candidate."""
    operator.succeed(f"forge wait {job} --timeout 5m")
    candidate = forge(f"status {job}")["candidate_sha"]
    refs = worker.succeed(
        f"git --git-dir={REPOSITORY} for-each-ref --format='%(objectname)' {CANDIDATES}/{job}"
    )
    assert refs.split() == [candidate], f"refs of the job: {refs}, the Gate has {candidate}"
    ends = gate.succeed(
        "journalctl --no-pager -o cat -u forge-gate.service"
        f" | grep -F {job} | grep -c -E 'terminal_(candidate|failure)'"
    )
    assert int(ends) == 1, f"the job ended {ends} times"
    return candidate


def attempts(job):
    return len(forge(f"result {job}")["attempts"])


# A virtual machine can be rebooted; a container has no kernel of its own, so its service is restarted.
if hasattr(gate, "reboot"):
    gate.start(allow_reboot=True)
start_all()

with subtest("a missing credential fails the start, and the option is named"):
    for machine, service, missing in (
        (gate, "forge-gate", {"ownerTokenFile": "owner.token", "tls.keyFile": "gate.key"}),
        (worker, "forge-worker", {"tokenFile": "worker.token"}),
    ):
        for option, file in missing.items():
            machine.wait_until_succeeds(
                f"journalctl --no-pager -u {service}-secrets.service"
                f" | grep -F 'services.{service}.{option}: there is no file /var/secrets/{file}'"
            )
        machine.fail(f"systemctl start {service}.service")
        machine.fail(f"systemctl is-active {service}.service")

with subtest("the operator makes an authority, tokens and a repository"):
    operator.succeed(
        f"mkdir -m 0700 -p {PKI} ~/.ssh /var/pki /var/secrets && chmod 0755 /var/pki",
        f"cd {PKI} && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        " -subj /CN=e2e -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.crt 2>&1",
        f"cd {PKI} && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        " -subj /CN=gate -addext subjectAltName=DNS:gate -keyout gate.key -out gate.csr 2>&1",
        f"cd {PKI} && openssl x509 -req -in gate.csr -CA ca.crt -CAkey ca.key -days 2"
        " -copy_extensions copy -out gate.crt 2>&1",
        f"umask 077; for name in owner worker; do"
        f" head -c 32 /dev/urandom | base64 -w0 | tr '+/' '-_' >{PKI}/$name.token; done",
        f"cp {PKI}/ca.crt /var/pki/ && cp {PKI}/owner.token /var/secrets/",
        "ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519",
    )
    public = operator.succeed("cat ~/.ssh/id_ed25519.pub").strip()
    for machine, files in (
        (gate, "owner.token worker.token gate.crt gate.key"),
        (worker, "worker.token"),
    ):
        machine.wait_for_unit("sshd.service")
        machine.succeed(
            "umask 077; mkdir -p ~/.ssh /var/secrets"
            f" && echo '{public}' >~/.ssh/authorized_keys"
        )
        key = machine.succeed("cat /etc/ssh/ssh_host_ed25519_key.pub").strip()
        operator.succeed(f"echo '{machine.name} {key}' >>~/.ssh/known_hosts")
        operator.succeed(
            f"tar -C {PKI} -c {files} | ssh {machine.name} 'umask 077; tar -C /var/secrets -x'"
        )
    operator.succeed(
        f"ssh worker 'mkdir -p /var/pki && cat >/var/pki/ca.crt && chmod 0644 /var/pki/ca.crt' <{PKI}/ca.crt"
    )
    as_worker = "cd / && runuser -u forge-worker --"
    worker.succeed(
        f"install -d -m 0700 -o forge-worker -g forge-worker {STATE} {STATE}/repositories",
        f"{as_worker} git init -q --bare -b main {REPOSITORY}",
        # The operator reads it as root.
        f"git config --global --add safe.directory {REPOSITORY}",
    )
    operator.succeed(
        "git init -q -b main /srv/app && cd /srv/app && echo 'an app' >README"
        " && git add README && git -c user.name=Op -c user.email=op@example.invalid commit -qm base",
        "git -C /srv/app bundle create - main 2>/dev/null | ssh worker 'cat >/tmp/base.bundle'",
    )
    worker.succeed(
        f"chmod 0644 /tmp/base.bundle && {as_worker}"
        f" git --git-dir={REPOSITORY} fetch -q /tmp/base.bundle main:main"
    )

with subtest("Gate and Worker start, and speak TLS only"):
    gate.succeed("systemctl reset-failed && systemctl restart forge-gate.service")
    gate.wait_for_unit("forge-gate.service")
    worker.succeed("systemctl reset-failed && systemctl restart forge-worker.service")
    worker.wait_for_unit("forge-worker.service")
    operator.wait_for_open_port(8443, "gate")
    operator.succeed("curl -fsS --cacert /var/pki/ca.crt https://gate:8443/healthz | grep -F ok")
    operator.fail("curl -fsS https://gate:8443/healthz")
    operator.fail("curl -fsS http://gate:8443/healthz")
    operator.fail("FORGE_OWNER_TOKEN_FILE=/var/pki/ca.crt forge list")
    operator.wait_until_succeeds("forge workers --format json | grep '\"connected\":true'")

with subtest("a coding task becomes a candidate, which the operator fetches"):
    job = submit("answer forty-two", "grep -qx forty-two answer.txt")
    candidate = succeeded_once(job)
    operator.succeed(f"forge fetch {job} --from ssh://worker{REPOSITORY} --into /srv/app")
    assert operator.succeed(f"git -C /srv/app show {candidate}:answer.txt") == "forty-two\n"
    base = operator.succeed("git -C /srv/app rev-parse main")
    assert operator.succeed(f"git -C /srv/app rev-parse {candidate}^") == base
    assert "+forty-two" in operator.succeed(f"forge diff {job} --repo /srv/app")
    failing = submit("answer forty-three", "grep -qx forty-two answer.txt")
    operator.fail(f"forge wait {failing} --timeout 5m")
    assert "candidate_sha" not in forge(f"status {failing}")

with subtest("the units' sandboxes, from inside"):
    worker.succeed("touch /tmp/e2e-outside")
    job = submit("look", "test -s answer.txt")
    candidate = succeeded_once(job)
    operator.succeed(f"forge fetch {job} --from ssh://worker{REPOSITORY} --into /srv/app")
    seen = operator.succeed(f"git -C /srv/app show {candidate}:answer.txt")
    facts = dict(line.replace(":", "").split(None, 1) for line in seen.splitlines())
    assert facts["user"] == "forge-worker", seen
    assert facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2", seen
    for name in ("CapEff", "CapBnd", "CapAmb"):
        assert int(facts[name], 16) == 0, seen
    assert "can write" not in seen and "can read" not in seen, seen
    assert "/forge-worker.service" in facts["cgroup"], seen
    variables = [line.split()[1] for line in seen.splitlines() if line.startswith("variable")]
    assert not [name for name in variables if "TOKEN" in name or "CREDENTIAL" in name], seen
    # The Gate runs nothing that could look, so its surroundings are entered.
    enter = "nsenter --mount --target $(systemctl show --property MainPID --value forge-gate.service)"
    for folder in ("/", "/etc", "/nix/store", "/var/lib"):
        gate.fail(f"{enter} touch {folder}/e2e-probe")
    gate.succeed(f"{enter} touch /var/lib/forge-gate/e2e-probe")
    gate.fail(f"{enter} test -e /dev/kmsg")
    gate.succeed("test $(stat --format=%a /var/lib/forge-gate) = 700")

with subtest("a Worker that is restarted in mid-job ends the job first"):
    job = hold("drained")
    worker.succeed("systemctl restart --no-block forge-worker.service")
    worker.wait_until_succeeds("systemctl show forge-worker.service | grep -x ActiveState=deactivating")
    release("drained")
    succeeded_once(job)
    assert attempts(job) == 1
    worker.wait_for_unit("forge-worker.service")

with subtest("a Worker that is killed in mid-job does the job again"):
    job = hold("killed")
    worker.succeed("systemctl kill --kill-whom=main --signal=KILL forge-worker.service")
    release("killed")
    succeeded_once(job)
    assert attempts(job) >= 2
    worker.wait_for_unit("forge-worker.service")

with subtest("the Gate is restarted while a job is leased"):
    job = hold("gate")
    if hasattr(gate, "reboot"):
        gate.reboot()
    else:
        gate.succeed("systemctl restart forge-gate.service")
    gate.wait_for_unit("forge-gate.service")
    release("gate")
    succeeded_once(job)
