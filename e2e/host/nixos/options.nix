# The NixOS options that this repository sets. One that is not here is an error.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;

  option =
    type: default: description:
    mkOption { inherit type default description; };
  value = types.oneOf [
    types.bool
    types.int
    types.float
    types.str
    types.path
    types.package
  ];
  section = types.attrsOf (types.either value (types.listOf value));
  names = types.listOf types.str;

  unit = {
    enable = option types.bool true "Whether the unit is active.";
    description = option types.singleLineStr "" "What it is.";
    documentation = option names [ ] "Where to read about it.";
    wantedBy = option names [ ] "Units that want it.";
    requiredBy = option names [ ] "Units that require it.";
    wants = option names [ ] "Units to start along.";
    requires = option names [ ] "Units to start along, needed.";
    after = option names [ ] "Units to start before it.";
    before = option names [ ] "Units to start after it.";
    bindsTo = option names [ ] "Units it ends with.";
    partOf = option names [ ] "Units it is stopped and restarted with.";
    conflicts = option names [ ] "Units that cannot run beside it.";
    unitConfig = option section { } "Further lines of [Unit].";
  };

  service = {
    options = unit // {
      environment = option (types.attrsOf (
        types.nullOr (
          types.oneOf [
            types.str
            types.path
            types.package
          ]
        )
      )) { } "Environment variables.";
      path = option (types.listOf (types.either types.package types.str)) [ ] "Packages in PATH.";
      script = option types.lines "" "Shell commands to run as the main process.";
      preStart = option types.lines "" "Shell commands to run before it.";
      serviceConfig = option section { } "Lines of [Service].";
      restartTriggers = option (types.listOf types.unspecified) [ ] "A change of these restarts it.";
      restartIfChanged = option types.bool true "Whether a switch restarts it.";
      stopIfChanged = option types.bool true "Whether a switch stops the old and starts the new one.";
      startAt = option (types.either types.str names) [ ] "When a timer starts it.";
    };
  };

  socket = {
    options = unit // {
      listenStreams = option names [ ] "Addresses to listen on.";
      socketConfig = option section { } "Lines of [Socket].";
    };
  };

  user =
    { name, ... }:
    {
      options = {
        name = option types.str name "The name.";
        uid = option (types.nullOr types.int) null "The number.";
        group = option types.str "" "The primary group.";
        extraGroups = option names [ ] "Further groups.";
        description = option types.str "" "Who it is.";
        home = option types.path "/var/empty" "The home folder.";
        createHome = option types.bool false "Whether to make the home folder.";
        isNormalUser = option types.bool false "Whether it is a person.";
        isSystemUser = option types.bool false "Whether it is a service.";
        packages = option (types.listOf types.package) [ ] "Packages for this user.";
        shell = option (types.nullOr (types.either types.path types.package)) null "The login shell.";
      };
    };

  group =
    { name, ... }:
    {
      options = {
        name = option types.str name "The name.";
        gid = option (types.nullOr types.int) null "The number.";
        members = option names [ ] "Its users.";
      };
    };

  file =
    { name, ... }:
    {
      options = {
        enable = option types.bool true "Whether to make it.";
        target = option types.str name "Where, below /etc.";
        text = option (types.nullOr types.lines) null "What is in it.";
        source = option (types.nullOr types.path) null "The file it leads to.";
        mode = option types.str "symlink" "Its mode; a link if it has none.";
        user = option types.str "root" "Its owner.";
        group = option types.str "root" "Its group.";
      };
    };

  submodules = module: description: option (types.attrsOf (types.submodule module)) { } description;
in
{
  options = {
    assertions = option (types.listOf types.unspecified) [ ] "What must hold.";
    warnings = option (types.listOf types.str) [ ] "What to tell.";

    boot.isContainer = option types.bool false "Whether it has no kernel of its own.";
    nixpkgs.hostPlatform = option types.unspecified null "The system.";
    system.stateVersion = option types.str "unknown" "Whose defaults state follows.";
    system.build = option (types.attrsOf types.unspecified) { } "What can be built.";

    systemd.services = submodules service "Services.";
    systemd.sockets = submodules socket "Sockets.";
    systemd.units = submodules {
      options.text = option types.str "" "The text.";
    } "The units as files.";
    systemd.tmpfiles.rules = option names [ ] "Lines of tmpfiles.d.";

    users.users = submodules user "Users.";
    users.groups = submodules group "Groups.";

    environment.etc = submodules file "Files below /etc.";
    environment.systemPackages = option (types.listOf types.package) [ ] "Packages for everybody.";
    environment.variables = option (types.attrsOf (
      types.oneOf [
        types.str
        types.path
      ]
    )) { } "Variables of every session.";

    networking.hostName = option types.str "nixos" "The name of the machine.";
    networking.hosts = option (types.attrsOf names) { } "Names by address.";
    networking.primaryIPAddress = option types.str "" "The address in a test.";
    networking.firewall.enable = option types.bool true "Whether there is a firewall.";
    networking.firewall.allowedTCPPorts = option (types.listOf types.port) [ ] "Ports that are open.";

    services.openssh.enable = option types.bool false "Whether there is an ssh server.";

    security.pki.certificateFiles = option (types.listOf types.path) [ ] "Authorities to trust.";

    virtualisation.memorySize = option types.ints.positive 1024 "MiB of a test machine.";
    virtualisation.cores = option types.ints.positive 1 "Processors of a test machine.";
    virtualisation.diskSize = option types.ints.positive 1024 "MiB of its disk.";
  };

  # Debian's server; NixOS too makes the host's keys at the first start.
  config.systemd.services.sshd = lib.mkIf config.services.openssh.enable {
    description = "SSH server";
    wantedBy = [ "multi-user.target" ];
    after = [ "network.target" ];
    preStart = ''
      mkdir -p /run/sshd
      /usr/bin/ssh-keygen -A
    '';
    serviceConfig.ExecStart = "/usr/sbin/sshd -D -e";
    serviceConfig.KillMode = "process";
  };

  config.assertions =
    lib.mapAttrsToList (name: user: {
      assertion = (if user.isNormalUser then !user.isSystemUser else user.isSystemUser);
      message = "Exactly one of users.users.${name}.isSystemUser and users.users.${name}.isNormalUser must be set.";
    }) config.users.users
    ++ lib.mapAttrsToList (name: user: {
      assertion = user.isNormalUser || user.group != "";
      message = "users.users.${name}.group is unset.";
    }) config.users.users
    ++ lib.mapAttrsToList (name: user: {
      assertion = user.group == "" || user.group == "users" || config.users.groups ? ${user.group};
      message = "users.users.${name}.group: there is no group `${user.group}'.";
    }) config.users.users;
}
