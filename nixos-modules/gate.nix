# services.forge-gate: the control server.
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

  cfg = config.services.forge-gate;
  common = import ./common.nix { inherit lib pkgs; };
  json = pkgs.formats.json { };
  place = common.placeOf "forge-gate";

  files = [
    {
      id = "owner";
      option = "services.forge-gate.ownerTokenFile";
      path = cfg.ownerTokenFile;
    }
  ]
  ++ lib.mapAttrsToList (id: worker: {
    id = "worker-${id}";
    option = "services.forge-gate.workers.${id}.tokenFile";
    path = worker.tokenFile;
  }) cfg.workers
  ++ lib.optional (cfg.tls.certificateFile != null) {
    id = "tls-certificate";
    option = "services.forge-gate.tls.certificateFile";
    path = cfg.tls.certificateFile;
    public = true;
  }
  ++ lib.optional (cfg.tls.keyFile != null) {
    id = "tls-key";
    option = "services.forge-gate.tls.keyFile";
    path = cfg.tls.keyFile;
  };

  # `HOST:PORT`, `[IPv6]:PORT` or `:PORT`
  listen = builtins.match "(.*):([0-9]+)" cfg.settings.listen;
  host = lib.elemAt listen 0;
  port = lib.toInt (lib.elemAt listen 1);
  isAddress = builtins.match "[0-9.]*|\\[[0-9a-fA-F:.]+]" host != null;
  everywhere = lib.elem host [
    ""
    "0.0.0.0"
    "[::]"
  ];

  # How clients on this machine reach it; null where only the certificate could say.
  authority =
    if port == 0 then
      null
    else if !isAddress then
      host
    else if cfg.tls.keyFile == null then
      if host == "[::]" then
        "[::1]"
      else if everywhere then
        "127.0.0.1"
      else
        host
    else if everywhere && config.networking.hostName != "" then
      config.networking.hostName
    else
      null;
in
{
  imports = [ ./operator.nix ];

  options.services.forge-gate = {
    enable = mkEnableOption "the Gate of Agent Forge, which queues tasks and leases them to Workers";

    package = mkPackageOption pkgs "forge-gate" { };

    settings = mkOption {
      description = ''
        The Gate's configuration file, see docs/reference/config-gate.md. The program itself judges it while
        the system is built. Tokens and the TLS key are named by the options below.
      '';
      default = { };
      example = literalExpression ''
        {
          listen = "0.0.0.0:8443";
          repositories = [ { id = "app"; default_branch = "main"; worker_pool = "coding"; execution = { … }; } ];
        }
      '';
      type = types.submodule {
        freeformType = json.type;
        options.listen = mkOption {
          type = types.strMatching ".*:[0-9]+";
          default = "127.0.0.1:7070";
          description = "Where the Gate listens: `address:port`, `[IPv6]:port`, or `:port` for every interface.";
        };
      };
    };

    ownerTokenFile = common.mkSecretOption {
      example = "/run/secrets/forge-owner";
      description = "File with the owner's token; root reads it at each start.";
    };

    workers = mkOption {
      default = { };
      description = "The Workers that may connect, by their id.";
      type = types.attrsOf (
        types.submodule {
          options = {
            pool = mkOption {
              type = types.str;
              default = "coding";
              description = "The pool whose jobs it gets.";
            };
            concurrency = mkOption {
              type = types.ints.between 1 64;
              default = 1;
              description = "How many jobs it may run at a time.";
            };
            tokenFile = common.mkSecretOption {
              example = "/run/secrets/forge-worker-1";
              description = "File with this Worker's token; root reads it at each start.";
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
          `systemctl try-restart forge-gate`; waiting connections and leases outlive that.
        '';
      };
    };

    socketActivation = mkOption {
      type = types.bool;
      default = true;
      description = ''
        Whether systemd holds the listening socket, so that connections wait while the Gate restarts.
        `settings.listen` must then be an address and not a name.
      '';
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
      ++ common.settingsAssertions "services.forge-gate.settings" cfg.settings
      ++ [
        {
          assertion = (cfg.tls.certificateFile == null) == (cfg.tls.keyFile == null);
          message = "`services.forge-gate.tls.certificateFile' and `services.forge-gate.tls.keyFile' belong together: set both or neither.";
        }
        {
          assertion = cfg.socketActivation -> isAddress;
          message = "`services.forge-gate.settings.listen' is a name (`${cfg.settings.listen}'): systemd listens on addresses only. Write an address, or set `services.forge-gate.socketActivation = false'.";
        }
      ];

    services.forge-gate.settings = {
      version = mkDefault 1;
      database = mkDefault "/var/lib/forge-gate/gate.db";
      recovery_interval = mkDefault "1s";
      lease_poll_interval = mkDefault "100ms";
      default_pool = mkDefault "coding";
      lifecycle = {
        lease_ttl = mkDefault "30s";
        retry_base = mkDefault "1s";
        max_attempts = mkDefault 3;
      };
      default_execution = {
        plugin_id = mkDefault "text";
        environment = mkDefault [ ];
        plugin_timeout = mkDefault "15m";
        check_timeout = mkDefault "10m";
        git_timeout = mkDefault "1m";
        cleanup_timeout = mkDefault "10s";
        plugin_output_bytes = mkDefault 1048576;
        check_output_bytes = mkDefault 2048;
        git_output_bytes = mkDefault 1048576;
      };
      owner_token_file = place "owner";
      workers = lib.mapAttrsToList (id: worker: {
        inherit id;
        inherit (worker) pool concurrency;
        token_file = place "worker-${id}";
      }) cfg.workers;
      tls = mkIf (cfg.tls.keyFile != null && cfg.tls.certificateFile != null) {
        certificate = place "tls-certificate";
        key = place "tls-key";
      };
    };

    services.forge-gate.settingsFile = common.checkedSettings {
      option = "services.forge-gate.settings";
      inherit (cfg) package settings;
      check = cfg.checkSettings;
    };

    users.users.forge-gate = {
      isSystemUser = true;
      group = "forge-gate";
      description = "Agent Forge Gate";
      home = "/var/lib/forge-gate";
    };
    users.groups.forge-gate = { };

    systemd.services.forge-gate-secrets = common.checkUnit "forge-gate" files;

    systemd.sockets.forge-gate = mkIf cfg.socketActivation {
      description = "Agent Forge Gate";
      wantedBy = [ "sockets.target" ];
      listenStreams = [ (if host == "" then toString port else cfg.settings.listen) ];
      socketConfig = {
        # as the Gate sets it on a socket of its own
        NoDelay = true;
        Backlog = 1024;
        # sockets are made early in a boot, before the machine has the addresses of its network
        FreeBind = true;
      };
    };

    systemd.services.forge-gate = {
      description = "Agent Forge Gate";
      wantedBy = [ "multi-user.target" ];
      wants = [
        "network-online.target"
        "forge-gate-secrets.service"
      ];
      requires = mkIf cfg.socketActivation [ "forge-gate.socket" ];
      after = [
        "network-online.target"
        "forge-gate-secrets.service"
      ]
      ++ lib.optional cfg.socketActivation "forge-gate.socket";
      # A secret may come later: it is tried for as long as it takes.
      unitConfig.StartLimitIntervalSec = 0;
      serviceConfig = import ./hardening.nix // {
        Type = "notify";
        ExecStart = "${lib.getExe cfg.package} --config ${cfg.settingsFile}";
        Restart = "on-failure";
        RestartSec = 5;
        # running requests get 10 s, the rest is the store's
        TimeoutStopSec = 30;

        # A fixed user: with a dynamic one the state folder is reached through a link, which the Gate refuses.
        User = "forge-gate";
        Group = "forge-gate";
        StateDirectory = "forge-gate";
        StateDirectoryMode = "0700";
        WorkingDirectory = "/var/lib/forge-gate";
        LoadCredential = common.loadCredential files;
        ReadWritePaths = lib.optional (
          lib.hasPrefix "/" cfg.settings.database
          && !lib.hasPrefix "/var/lib/forge-gate/" cfg.settings.database
        ) (common.pathInUnit (dirOf cfg.settings.database));
        # a socket for each slot, and the database
        LimitNOFILE = 16384;
      };
    };

    networking.firewall.allowedTCPPorts = mkIf cfg.openFirewall [ port ];

    # The owner's token stays where it is: `programs.forge.ownerTokenFile` says who may read it.
    programs.forge.gateUrl = mkDefault (
      if authority == null then
        null
      else
        "http${lib.optionalString (cfg.tls.keyFile != null) "s"}://${authority}:${toString port}"
    );
  };
}
