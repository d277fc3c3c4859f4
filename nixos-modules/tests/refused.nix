# Configurations that must be refused, with words of the refusal, and some that must not.
let
  appliance = {
    services.agent-forge.enable = true;
    services.agent-forge.repositories.app = { };
  };
  gate = {
    services.forge-gate = {
      enable = true;
      ownerTokenFile = "/run/secrets/owner";
      workers.worker-1.tokenFile = "/run/secrets/worker-1";
    };
  };
  worker = {
    services.forge-worker = {
      enable = true;
      tokenFile = "/run/secrets/worker-1";
      settings = {
        id = "worker-1";
        gate_url = "wss://gate.example:8443";
        repositories = [
          {
            id = "app";
            path = "/var/lib/forge-worker/repositories/app.git";
          }
        ];
        plugins = [
          {
            id = "agent";
            argv = [ "/opt/agent" ];
          }
        ];
      };
    };
  };
  registry = {
    services.backplane-registry = {
      enable = true;
      tokens.ci = {
        scopes = [
          "read"
          "publish"
        ];
        plugins = [ "acme-*" ];
        tokenFile = "/run/secrets/ci";
      };
    };
  };
  also = base: more: {
    module.imports = [
      base
      more
    ];
  };
in
{
  inherit appliance registry;

  accepted = {
    inherit
      appliance
      gate
      registry
      worker
      ;
    registry-public = {
      imports = [ registry ];
      services.backplane-registry = {
        openFirewall = true;
        settings.listen = ":8790";
        tls.certificateFile = "/etc/backplane/cert.pem";
        tls.keyFile = "/run/secrets/backplane.key";
      };
    };
    # where another server speaks TLS
    registry-behind = {
      imports = [ registry ];
      services.backplane-registry.settings = {
        listen = "192.0.2.5:8790";
        insecure_listen = true;
      };
    };
    public = {
      imports = [ gate ];
      services.forge-gate = {
        openFirewall = true;
        settings.listen = ":8443";
        tls.certificateFile = "/etc/forge/cert.pem";
        tls.keyFile = "/run/secrets/forge.key";
      };
    };
    named = {
      imports = [ gate ];
      services.forge-gate = {
        socketActivation = false;
        settings.listen = "localhost:7070";
      };
      programs.forge.enable = true;
    };
    # what the modules set is a default
    changed = {
      imports = [
        gate
        worker
      ];
      services.forge-gate.settings.lifecycle.lease_ttl = "1m";
      services.forge-worker.settings.ceilings.plugin_timeout = "2h";
      services.forge-worker.settings.repository_roots = [ "/srv/with space" ];
      services.forge-worker.settings.repositories = [
        {
          id = "other";
          path = "/srv/with space/other.git";
        }
      ];
      services.forge-worker.checkSettings = false;
    };
  };

  # Where the appliance's own clients look for the Gate, by what it listens on.
  urls =
    let
      tls = {
        certificateFile = "/etc/forge/cert.pem";
        keyFile = "/run/secrets/forge.key";
      };
      at = listen: more: {
        imports = [ appliance ];
        networking.hostName = "forge";
        services.forge-gate = {
          settings.listen = listen;
        }
        // more;
      };
    in
    {
      "http://127.0.0.1:7071" = at "127.0.0.1:7071" { };
      "http://127.0.0.1:7072" = at ":7072" { };
      "http://127.0.0.1:7073" = at "0.0.0.0:7073" { };
      "http://[::1]:7074" = at "[::]:7074" { };
      "http://192.0.2.5:7075" = at "192.0.2.5:7075" { };
      "http://localhost:7076" = at "localhost:7076" { };
      "https://forge:7077" = at "0.0.0.0:7077" { inherit tls; };
      "https://gate.example:7078" = at "gate.example:7078" { inherit tls; };
      "https://given.example" = {
        imports = [ (at "192.0.2.5:7079" { inherit tls; }) ];
        programs.forge.gateUrl = "https://given.example";
      };
    };

  # by Nix, before anything is built
  evaluation = {
    unknown-option = also gate { services.forge-gate.prot = 1; } // {
      says = "The option `services.forge-gate.prot' does not exist";
    };
    unknown-worker-option = also worker { services.forge-worker.tokenfile = "/x"; } // {
      says = "The option `services.forge-worker.tokenfile' does not exist";
    };
    wrong-type = also gate { services.forge-gate.openFirewall = "yes"; } // {
      says = "A definition for option `services.forge-gate.openFirewall' is not of type `boolean'";
    };
    wrong-concurrency = also gate { services.forge-gate.workers.worker-1.concurrency = 65; } // {
      says = "A definition for option `services.forge-gate.workers.worker-1.concurrency' is not of type";
    };
    no-owner-token = {
      module.services.forge-gate.enable = true;
      says = "The option `services.forge-gate.ownerTokenFile' was accessed but has no value defined";
    };
    no-worker-token = {
      module.services.forge-worker.enable = true;
      says = "The option `services.forge-worker.tokenFile' was accessed but has no value defined";
    };
    owner-token-in-store = {
      module = {
        services.forge-gate = {
          enable = true;
          ownerTokenFile = ./refused.nix;
          workers.worker-1.tokenFile = "/run/secrets/worker-1";
        };
      };
      says = "`services.forge-gate.ownerTokenFile' lies in the Nix store";
    };
    gate-worker-token-in-store =
      also gate {
        services.forge-gate.workers.worker-2.tokenFile = "${./refused.nix}";
      }
      // {
        says = "`services.forge-gate.workers.worker-2.tokenFile' lies in the Nix store";
      };
    tls-key-in-store =
      also gate {
        services.forge-gate.tls.certificateFile = "/etc/forge/cert.pem";
        services.forge-gate.tls.keyFile = ./refused.nix;
      }
      // {
        says = "`services.forge-gate.tls.keyFile' lies in the Nix store";
      };
    worker-token-in-store = {
      module.services.forge-worker = worker.services.forge-worker // {
        tokenFile = ./refused.nix;
      };
      says = "`services.forge-worker.tokenFile' lies in the Nix store";
    };
    operator-token-in-store = {
      module.programs.forge = {
        enable = true;
        gateUrl = "https://gate.example";
        ownerTokenFile = "${./refused.nix}";
      };
      says = "`programs.forge.ownerTokenFile' lies in the Nix store";
    };
    secret-in-settings =
      also gate {
        services.forge-gate.settings.workers = [
          {
            id = "worker-9";
            pool = "coding";
            concurrency = 1;
            token_file = ./refused.nix;
          }
        ];
      }
      // {
        says = ".token_file' lies in the Nix store";
      };
    secret-in-settings-by-another-spelling =
      also gate {
        services.forge-gate.settings.workers = [
          {
            id = "worker-9";
            pool = "coding";
            concurrency = 1;
            token_file = "/nix/../nix/store/token";
          }
        ];
      }
      // {
        says = ".token_file' is `/nix/../nix/store/token', which is not in normal form";
      };
    token-with-two-slashes =
      also gate { services.forge-gate.workers.worker-2.tokenFile = "//nix/store/token"; }
      // {
        says = "`services.forge-gate.workers.worker-2.tokenFile' is `//nix/store/token', which is not in normal form";
      };
    operator-token-with-a-dot = {
      module.programs.forge = {
        enable = true;
        gateUrl = "https://gate.example";
        ownerTokenFile = "/nix/./store/token";
      };
      says = "`programs.forge.ownerTokenFile' is `/nix/./store/token', which is not in normal form";
    };
    no-gate-url = {
      module.programs.forge.enable = true;
      says = "`programs.forge.gateUrl' must be set";
    };
    certificate-for-one-address =
      also appliance {
        services.forge-gate.settings.listen = "192.0.2.5:8443";
        services.forge-gate.tls.certificateFile = "/etc/forge/cert.pem";
        services.forge-gate.tls.keyFile = "/run/secrets/key";
      }
      // {
        says = "`programs.forge.gateUrl' must be set";
      };
    half-of-tls = also gate { services.forge-gate.tls.keyFile = "/run/secrets/key"; } // {
      says = "`services.forge-gate.tls.certificateFile' and `services.forge-gate.tls.keyFile' belong together";
    };
    socket-with-a-name = also gate { services.forge-gate.settings.listen = "gate.example:7070"; } // {
      says = "`services.forge-gate.settings.listen' is a name";
    };
    token-set-twice = also gate { services.forge-gate.settings.owner_token_file = "/elsewhere"; } // {
      says = "The option `services.forge-gate.settings.owner_token_file' has conflicting definition values";
    };
    repositories-at-home =
      also worker { services.forge-worker.settings.repository_roots = [ "/home/me/src" ]; }
      // {
        says = "`services.forge-worker.settings.repository_roots' has `/home/me/src'";
      };
    registry-without-tls =
      also registry { services.backplane-registry.settings.listen = "0.0.0.0:8790"; }
      // {
        says = "`services.backplane-registry.settings.listen' is `0.0.0.0:8790', beyond loopback and without TLS";
      };
    registry-half-of-tls =
      also registry { services.backplane-registry.tls.keyFile = "/run/secrets/key"; }
      // {
        says = "`services.backplane-registry.tls.certificateFile' and `services.backplane-registry.tls.keyFile' belong together";
      };
    registry-token-in-store =
      also registry { services.backplane-registry.tokens.other.tokenFile = ./refused.nix; }
      // {
        says = "`services.backplane-registry.tokens.other.tokenFile' lies in the Nix store";
      };
    registry-s3-secret-in-store =
      also registry {
        services.backplane-registry.settings.artifacts.secret_access_key_file = "${./refused.nix}";
      }
      // {
        says = "`services.backplane-registry.settings.artifacts.secret_access_key_file' lies in the Nix store";
      };
    registry-unknown-scope =
      also registry { services.backplane-registry.tokens.ci.scopes = [ "admin" ]; }
      // {
        says = "A definition for option `services.backplane-registry.tokens.ci.scopes";
      };
    registry-unknown-option = also registry { services.backplane-registry.prot = 1; } // {
      says = "The option `services.backplane-registry.prot' does not exist";
    };
    url-with-a-quote = {
      module.programs.forge = {
        enable = true;
        gateUrl = "https://x\"; rm -rf /";
      };
      says = "A definition for option `programs.forge.gateUrl' is not of type";
    };
  };

  # by the program itself, when its settings are built
  build = {
    unknown-gate-setting = also gate { services.forge-gate.settings.lifecycle.lease_tll = "1s"; } // {
      file = config: config.services.forge-gate.settingsFile;
      says = [
        "lease_tll"
        "services.forge-gate.settings"
      ];
    };
    bad-gate-duration = also gate { services.forge-gate.settings.recovery_interval = "1 parsec"; } // {
      file = config: config.services.forge-gate.settingsFile;
      says = [
        "recovery_interval"
        "services.forge-gate.settings"
      ];
    };
    unknown-registry-setting =
      also registry { services.backplane-registry.settings.limits.max_flies = 3; }
      // {
        file = config: config.services.backplane-registry.settingsFile;
        says = [
          "max_flies"
          "services.backplane-registry.settings"
        ];
      };
    bad-worker-range = also worker { services.forge-worker.settings.concurrency = 65; } // {
      file = config: config.services.forge-worker.settingsFile;
      says = [
        "concurrency"
        "services.forge-worker.settings"
      ];
    };
    worker-without-id = {
      module.services.forge-worker = {
        enable = true;
        tokenFile = "/run/secrets/worker-1";
      };
      file = config: config.services.forge-worker.settingsFile;
      says = [
        "services.forge-worker.settings"
      ];
    };
  };
}
