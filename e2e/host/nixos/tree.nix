# Makes the tree of files that is laid over a Debian root file system.
{
  lib,
  config,
  pkgs,
  ...
}:
let
  units = import ./units.nix { inherit lib pkgs; };
  active = lib.filterAttrs (_: unit: unit.enable);
  services = active config.systemd.services;
  sockets = active config.systemd.sockets;

  failed = map (each: each.message) (lib.filter (each: !each.assertion) config.assertions);
  checked =
    value:
    if failed != [ ] then
      throw "\nFailed assertions:\n${lib.concatMapStringsSep "\n" (message: "- ${message}") failed}"
    else
      lib.foldl' (value: warning: builtins.trace "warning: ${warning}" value) value config.warnings;

  texts =
    lib.mapAttrs' (name: unit: lib.nameValuePair "${name}.service" (units.service name unit)) services
    // lib.mapAttrs' (name: unit: lib.nameValuePair "${name}.socket" (units.socket name unit)) sockets;

  links =
    suffix: what: kind:
    lib.concatLists (
      lib.mapAttrsToList (name: unit: map (target: "${target}.${what} ${name}.${suffix}") unit.${kind}) (
        if suffix == "service" then services else sockets
      )
    );
  enabled =
    links "service" "wants" "wantedBy"
    ++ links "service" "requires" "requiredBy"
    ++ links "socket" "wants" "wantedBy"
    ++ links "socket" "requires" "requiredBy";

  users = lib.attrValues config.users.users;
  groups = lib.attrValues config.users.groups;
  number = value: if value == null then "-" else toString value;
  groupOf = user: if user.group == "" then "users" else user.group;
  sysusers =
    map (group: "g ${group.name} ${number group.gid}") groups
    ++ map (
      user:
      "u ${user.name} ${
        if user.uid == null then "-:${groupOf user}" else "${toString user.uid}:${groupOf user}"
      } ${builtins.toJSON user.description} ${user.home} ${
        if user.shell != null then
          toString user.shell
        else if user.isNormalUser then
          "/bin/bash"
        else
          "/usr/sbin/nologin"
      }"
    ) users
    ++ lib.concatMap (user: map (group: "m ${user.name} ${group}") user.extraGroups) users
    ++ lib.concatMap (group: map (user: "m ${user} ${group.name}") group.members) groups;
  homes = map (user: "d ${user.home} 0700 ${user.name} ${groupOf user} -") (
    lib.filter (user: user.createHome || user.isNormalUser) users
  );

  priority = package: package.meta.priority or 5;
  packages = builtins.sort (a: b: priority a < priority b) config.environment.systemPackages;

  files = lib.filter (file: file.enable) (lib.attrValues config.environment.etc);
  hosts = lib.concatStringsSep "\n" (
    [
      "127.0.0.1 localhost"
      "::1 localhost"
    ]
    ++ lib.mapAttrsToList (
      address: names: "${address} ${lib.concatStringsSep " " names}"
    ) config.networking.hosts
  );
  firewall = lib.concatMapStringsSep "\n" toString config.networking.firewall.allowedTCPPorts;

  plain = {
    "etc/hostname" = config.networking.hostName;
    "etc/hosts" = hosts;
    "etc/sysusers.d/nixos.conf" = lib.concatStringsSep "\n" sysusers;
    "etc/tmpfiles.d/nixos.conf" = lib.concatStringsSep "\n" (homes ++ config.systemd.tmpfiles.rules);
    "etc/profile.d/nixos.sh" = lib.concatStringsSep "\n" (
      lib.mapAttrsToList (
        name: value: "export ${name}=${lib.escapeShellArg value}"
      ) config.environment.variables
    );
    "firewall/tcp" = firewall;
  }
  // lib.mapAttrs' (name: lib.nameValuePair "etc/systemd/system/${name}") texts;

  tree = pkgs.runCommand "node-${config.networking.hostName}" { plain = builtins.toJSON plain; } ''
    mkdir -p $out
    printf %s "$plain" | python3 -c '
    import json, os, sys
    for path, text in json.load(sys.stdin).items():
        path = os.path.join(os.environ["out"], path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text.rstrip("\n") + "\n" if text else "")
    '
    enable() {
      mkdir -p "$out/etc/systemd/system/$1"
      ln -s "../$2" "$out/etc/systemd/system/$1/$2"
    }
    ${lib.concatMapStringsSep "\n" (words: "enable ${words}") enabled}
    ${lib.concatMapStringsSep "\n" (
      file:
      let
        source = if file.text != null then pkgs.writeText "etc-file" file.text else file.source;
        target = "$out/etc/${file.target}";
      in
      ''
        mkdir -p "$(dirname ${target})"
        ${
          if file.mode == "symlink" then
            "ln -s ${source} ${target}"
          else
            "install -m ${file.mode} ${source} ${target}"
        }
      ''
    ) files}
    mkdir -p $out/usr/local/bin
    for package in ${toString packages}; do
      for program in "$package"/bin/*; do
        name=$out/usr/local/bin/"$(basename "$program")"
        [ ! -e "$program" ] || [ -e "$name" ] || ln -s "$program" "$name"
      done
    done
    ${lib.optionalString (config.security.pki.certificateFiles != [ ]) ''
      mkdir -p $out/etc/ssl/certs
      cat /etc/ssl/certs/ca-certificates.crt ${toString config.security.pki.certificateFiles} \
        >$out/etc/ssl/certs/ca-certificates.crt
    ''}
  '';
in
{
  config.systemd.units = lib.mapAttrs (_: text: { inherit text; }) texts;
  config.system.build.toplevel = checked tree;
}
