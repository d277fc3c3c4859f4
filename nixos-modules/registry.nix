# services.backplane-registry: a registry of Agent Plugins packages.
{
  lib,
  config,
  pkgs,
  ...
}:
let
  inherit (lib)
    literalExpression
    mkDefault
    mkEnableOption
    mkIf
    mkOption
    mkPackageOption
    types
    ;

  cfg = config.services.backplane-registry;
  common = import ./common.nix { inherit lib pkgs; };
  toml = pkgs.formats.toml { };
  state = "/var/lib/backplane-registry";
  place = common.placeOf "backplane-registry";
  hasTls = cfg.tls.keyFile != null && cfg.tls.certificateFile != null;

  files =
    lib.mapAttrsToList (id: token: {
      id = "token-${id}";
      option = "services.backplane-registry.tokens.${id}.tokenFile";
      path = token.tokenFile;
    }) cfg.tokens
    ++ lib.optional (cfg.tls.certificateFile != null) {
      id = "tls-certificate";
      option = "services.backplane-registry.tls.certificateFile";
      path = cfg.tls.certificateFile;
      public = true;
    }
    ++ lib.optional (cfg.tls.keyFile != null) {
      id = "tls-key";
      option = "services.backplane-registry.tls.keyFile";
      path = cfg.tls.keyFile;
    };

  # `HOST:PORT`, `[IPv6]:PORT` or `:PORT`
  listen = builtins.match "(.*):([0-9]+)" cfg.settings.listen;
  host = lib.elemAt listen 0;
  port = lib.toInt (lib.elemAt listen 1);
  isLoopback = host == "localhost" || host == "[::1]" || builtins.match "127\\.[0-9.]+" host != null;

  # the program judges the file while the system is built
  file = toml.generate "backplane-registry.toml" cfg.settings;
  checked = pkgs.runCommand "backplane-registry-checked.toml" { } ''
    if ! ${lib.getExe cfg.package} serve --check-config ${file}; then
      echo "\`services.backplane-registry.settings' is refused by \`backplane serve --check-config', see above" >&2
      exit 1
    fi
    cp ${file} $out
  '';
in
{
  options.services.backplane-registry = {
    enable = mkEnableOption "a registry of Agent Plugins packages, with tokens, channels and artifacts on disk";

    package = mkPackageOption pkgs "backplane" { };

    settings = mkOption {
      description = ''
        The registry's configuration file, see docs/reference/config-registry.md. The program itself judges it
        while the system is built. Tokens and the TLS key are named by the options below.
      '';
      default = { };
      example = literalExpression ''
        {
          listen = "0.0.0.0:8790";
          allowed_hosts = [ "plugins.example" ];
        }
      '';
      type = types.submodule {
        freeformType = toml.type;
        options = {
          listen = mkOption {
            type = types.strMatching ".*:[0-9]+";
            default = "127.0.0.1:8790";
            description = "Where the registry listens: `address:port`, `[IPv6]:port`, or `:port` for every interface.";
          };
          insecure_listen = mkOption {
            type = types.bool;
            default = false;
            description = "Whether it may listen beyond loopback without TLS: tokens then cross the network in plain text.";
          };
        };
      };
    };

    tokens = mkOption {
      default = { };
      description = ''
        Who may do what, by the name that logs and releases show. Without any, the first start makes
        ${state}/admin.token.
      '';
      type = types.attrsOf (
        types.submodule {
          options = {
            scopes = mkOption {
              type = types.listOf (
                types.enum [
                  "read"
                  "publish"
                  "promote"
                  "yank"
                  "report"
                  "*"
                ]
              );
              default = [ "read" ];
              description = "What it may do; `*` alone is everything.";
            };
            plugins = mkOption {
              type = types.listOf types.str;
              default = [ ];
              example = [ "acme-*" ];
              description = "Patterns of the plugins that it may change; none is every plugin.";
            };
            tokenFile = common.mkSecretOption {
              example = "/run/secrets/backplane-ci";
              description = "File with the token; root reads it at each start.";
            };
          };
        }
      );
    };

    tls = {
      certificateFile = mkOption {
        type = types.nullOr types.path;
        default = null;
        apply = path: if path == null then null else common.publicFile path;
        description = ''
          Certificate chain in PEM, which may be in the Nix store. Set together with `keyFile`.
        '';
      };
      keyFile = common.mkSecretOption {
        type = types.nullOr types.path;
        apply = path: if path == null then null else toString path;
        default = null;
        description = ''
          Private key in PEM. Root reads both at each start, so a renewed pair needs
          `systemctl try-restart backplane-registry`.
        '';
      };
    };

    openFirewall = mkOption {
      type = types.bool;
      default = false;
      description = "Whether to open the port of `settings.listen` in the firewall.";
    };

    inherit (common.settingsOptions) settingsFile checkSettings;
  };

  config = mkIf cfg.enable {
    assertions =
      common.assertions files
      ++ common.settingsAssertions "services.backplane-registry.settings" cfg.settings
      ++ [
        {
          assertion = (cfg.tls.certificateFile == null) == (cfg.tls.keyFile == null);
          message = "`services.backplane-registry.tls.certificateFile' and `services.backplane-registry.tls.keyFile' belong together: set both or neither.";
        }
        {
          assertion = isLoopback || hasTls || cfg.settings.insecure_listen;
          message = "`services.backplane-registry.settings.listen' is `${cfg.settings.listen}', beyond loopback and without TLS: set `services.backplane-registry.tls', or `settings.insecure_listen = true' where another server speaks TLS.";
        }
      ];

    services.backplane-registry.settings = {
      tokens = mkIf (cfg.tokens != { }) (
        lib.mapAttrsToList (
          name: token:
          {
            inherit name;
            inherit (token) scopes;
            token_file = place "token-${name}";
          }
          // lib.optionalAttrs (token.plugins != [ ]) { inherit (token) plugins; }
        ) cfg.tokens
      );
      tls = mkIf hasTls {
        cert_file = place "tls-certificate";
        key_file = place "tls-key";
      };
      log_format = mkDefault "json";
    };

    services.backplane-registry.settingsFile = if cfg.checkSettings then checked else file;

    users.users.backplane-registry = {
      isSystemUser = true;
      group = "backplane-registry";
      description = "Registry of Agent Plugins packages";
      home = state;
    };
    users.groups.backplane-registry = { };

    systemd.services.backplane-registry-secrets = common.checkUnit "backplane-registry" files;

    systemd.services.backplane-registry = {
      description = "Registry of Agent Plugins packages";
      wantedBy = [ "multi-user.target" ];
      wants = [
        "network-online.target"
        "backplane-registry-secrets.service"
      ];
      after = [
        "network-online.target"
        "backplane-registry-secrets.service"
      ];
      # A secret may come later: it is tried for as long as it takes.
      unitConfig.StartLimitIntervalSec = 0;
      serviceConfig = import ./hardening.nix // {
        Type = "notify";
        ExecStart = "${lib.getExe cfg.package} serve --root ${state} --config ${cfg.settingsFile}";
        Restart = "on-failure";
        RestartSec = 5;
        # running requests get 10 s, the rest is the store's
        TimeoutStopSec = 30;

        # A fixed user: what it stores belongs to it.
        User = "backplane-registry";
        Group = "backplane-registry";
        StateDirectory = "backplane-registry";
        StateDirectoryMode = "0700";
        WorkingDirectory = state;
        LoadCredential = common.loadCredential files;
        # a socket for each connection, and the store
        LimitNOFILE = 16384;
      };
    };

    networking.firewall.allowedTCPPorts = mkIf cfg.openFirewall [ port ];
  };
}
