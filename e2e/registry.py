# A registry over TLS with an authority made here, and a client: a package is published, found and downloaded;
# who lacks a scope is refused; a restart and a kill lose nothing. Secrets go from the client to the registry
# through ssh, never through this script.
import json

PKI = "/srv/pki"
STATE = "/var/lib/backplane-registry"
AS_PUBLISHER = "--token-file /srv/pki/publisher.token"
ASK = (
    "BACKPLANE_URL=https://registry:8790 BACKPLANE_CA_FILE=/srv/pki/ca.crt"
    " BACKPLANE_TOKEN_FILE=/srv/pki/reader.token backplane"
)


def ask(words):
    return json.loads(client.succeed(f"{ASK} {words} --format json").splitlines()[0])


def same_bytes(file):
    """Downloads the package and insists on what was packed."""
    client.succeed(f"rm -f /srv/{file} && cd /srv && {ASK} download hello -o {file}")
    client.succeed(f"cmp /srv/hello.tar.gz /srv/{file}")


start_all()

with subtest("a missing credential fails the start, and the option is named"):
    for option, file in (
        ("tokens.reader.tokenFile", "reader.token"),
        ("tls.keyFile", "registry.key"),
    ):
        registry.wait_until_succeeds(
            "journalctl --no-pager -u backplane-registry-secrets.service"
            f" | grep -F 'services.backplane-registry.{option}: there is no file /var/secrets/{file}'"
        )
    registry.fail("systemctl is-active backplane-registry.service")

with subtest("the client makes an authority and tokens"):
    client.succeed(
        f"mkdir -m 0700 -p {PKI} ~/.ssh",
        f"cd {PKI} && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        " -subj /CN=e2e -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.crt 2>&1",
        f"cd {PKI} && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        " -subj /CN=registry -addext subjectAltName=DNS:registry"
        " -keyout registry.key -out registry.csr 2>&1",
        f"cd {PKI} && openssl x509 -req -in registry.csr -CA ca.crt -CAkey ca.key -days 2"
        " -copy_extensions copy -out registry.crt 2>&1",
        f"umask 077; for name in reader publisher; do"
        f" head -c 32 /dev/urandom | base64 -w0 | tr '+/' '-_' >{PKI}/$name.token; done",
        "ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519",
    )
    public = client.succeed("cat ~/.ssh/id_ed25519.pub").strip()
    registry.wait_for_unit("sshd.service")
    registry.succeed(
        f"umask 077; mkdir -p ~/.ssh /var/secrets && echo '{public}' >~/.ssh/authorized_keys"
    )
    key = registry.succeed("cat /etc/ssh/ssh_host_ed25519_key.pub").strip()
    client.succeed(
        f"echo 'registry {key}' >>~/.ssh/known_hosts",
        f"tar -C {PKI} -c reader.token publisher.token registry.crt registry.key"
        " | ssh registry 'umask 077; tar -C /var/secrets -x'",
    )

with subtest("the registry starts, and speaks TLS only"):
    registry.succeed("systemctl reset-failed && systemctl restart backplane-registry.service")
    registry.wait_for_unit("backplane-registry.service")
    client.wait_for_open_port(8790, "registry")
    client.succeed(f"curl -fsS --cacert {PKI}/ca.crt https://registry:8790/healthz | grep -F ok")
    client.fail("curl -fsS https://registry:8790/healthz")
    client.fail("curl -fsS http://registry:8790/healthz")
    registry.succeed(f"test $(stat --format=%a {STATE}) = 700")
    registry.fail(f"test -e {STATE}/admin.token")

with subtest("a package is published, found and downloaded"):
    client.succeed("cd /srv && backplane init hello && backplane pack hello -o hello.tar.gz")
    client.fail(f"{ASK} publish /srv/hello --channel stable")
    client.fail(f"{ASK} resolve hello")
    release = ask(f"publish /srv/hello --channel stable {AS_PUBLISHER}")
    assert release["publisher"] == "publisher", release
    assert ask("catalog")["plugin_id"] == "hello"
    assert ask("resolve hello")["artifact_digest"] == release["artifact_digest"]
    digest = client.succeed("backplane digest /srv/hello.tar.gz")
    assert release["artifact_digest"] in digest, digest
    same_bytes("got.tar.gz")
    client.fail(f"{ASK} yank hello@{release['release_id']}")

with subtest("a restart keeps everything"):
    registry.succeed("systemctl restart backplane-registry.service")
    registry.wait_for_unit("backplane-registry.service")
    assert ask("resolve hello") == release
    same_bytes("restarted.tar.gz")

with subtest("a registry that is killed comes back with everything"):
    registry.succeed("systemctl kill --kill-whom=main --signal=KILL backplane-registry.service")
    client.wait_until_succeeds(f"{ASK} resolve hello")
    assert ask("resolve hello") == release
    same_bytes("killed.tar.gz")

with subtest("a release that is yanked leaves its channel"):
    ask(f"yank hello@{release['release_id']} --reason superseded {AS_PUBLISHER}")
    client.fail(f"{ASK} resolve hello")
    client.succeed(f"cd /srv && {ASK} download hello@{release['release_id']} -o old.tar.gz")
