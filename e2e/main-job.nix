# Gate, Worker and operator on three machines, over TLS: a coding task becomes a candidate commit that the
# operator fetches, whatever is restarted meanwhile. Nothing secret is here: main-job.py makes it.
{ self, pkgs }:
let
  secret = name: "/var/secrets/${name}";

  execution = {
    plugin_id = "agent";
    environment = [ "PATH" ];
    plugin_timeout = "15m";
    check_timeout = "5m";
    git_timeout = "5m";
    cleanup_timeout = "30s";
    plugin_output_bytes = 1048576;
    check_output_bytes = 2048;
    git_output_bytes = 1048576;
  };

  # Stands for a coding agent. What it is told: `answer TEXT`, `look` (at its own surroundings), or
  # `hold NAME TEXT`: answer as soon as the file go-NAME is there.
  agent = pkgs.writeShellScript "e2e-coding-agent" ''
    set -eu
    read -r order rest || true
    case "$order" in
      answer) echo "$rest" >answer.txt ;;
      hold)
        name=''${rest%% *}
        : >"/var/lib/forge-worker/started-$name"
        until [ -e "/var/lib/forge-worker/go-$name" ]; do sleep 0.2; done
        echo "''${rest#* }" >answer.txt
        ;;
      look)
        {
          echo "user $(id -un)"
          grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd|CapAmb):' /proc/self/status
          for folder in / /boot /etc /home /nix/store /root /usr /usr/bin /var /var/lib /var/secrets; do
            if (: >"$folder/e2e-probe") 2>/dev/null; then echo "can write $folder"; fi
          done
          for path in /root /var/secrets/worker.token /tmp/e2e-outside /dev/kmsg /dev/mem /dev/vda; do
            if [ -r "$path" ]; then echo "can read $path"; fi
          done
          env | while IFS='=' read -r name _; do echo "variable $name"; done
          echo "cgroup $(grep '^0::' /proc/self/cgroup)"
        } >answer.txt
        ;;
    esac
  '';
in
{
  name = "main-job";

  nodes.gate = {
    imports = [ self.nixosModules.gate ];
    services.openssh.enable = true;
    services.forge-gate = {
      enable = true;
      openFirewall = true;
      ownerTokenFile = secret "owner.token";
      workers.worker.tokenFile = secret "worker.token";
      tls = {
        certificateFile = secret "gate.crt";
        keyFile = secret "gate.key";
      };
      settings = {
        listen = "0.0.0.0:8443";
        # Short, so that the test of a Worker that is killed is.
        lifecycle = {
          lease_ttl = "10s";
          max_attempts = 5;
        };
        repositories = [
          {
            id = "app";
            default_branch = "main";
            worker_pool = "coding";
            inherit execution;
          }
        ];
      };
    };
  };

  nodes.worker = {
    imports = [ self.nixosModules.worker ];
    services.openssh.enable = true;
    environment.systemPackages = [ pkgs.git ];
    services.forge-worker = {
      enable = true;
      tokenFile = secret "worker.token";
      settings = {
        id = "worker";
        gate_url = "wss://gate:8443";
        # Public, and readable for the Worker's user.
        ca_file = "/var/pki/ca.crt";
        heartbeat_interval = "2s";
        repositories = [
          {
            id = "app";
            path = "/var/lib/forge-worker/repositories/app.git";
          }
        ];
        plugins = [
          {
            id = "agent";
            argv = [
              "${self.packages.${pkgs.stdenv.hostPlatform.system}.forge-exec-plugin}/bin/forge-exec-plugin"
              "--"
              "${agent}"
            ];
          }
        ];
        environment_allowlist = [ "PATH" ];
        check_environment_allowlist = [ "PATH" ];
      };
    };
  };

  nodes.operator = {
    imports = [ self.nixosModules.operator ];
    environment.systemPackages = [
      pkgs.curl
      pkgs.git
      pkgs.openssh
      pkgs.openssl
    ];
    programs.forge = {
      enable = true;
      gateUrl = "https://gate:8443";
      ownerTokenFile = secret "owner.token";
      caFile = "/var/pki/ca.crt";
    };
  };

  testScript = builtins.readFile ./main-job.py;
}
