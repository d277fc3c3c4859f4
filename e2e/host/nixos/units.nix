# The text of units.
{ lib, pkgs }:
let
  show = value: if lib.isBool value then lib.boolToString value else toString value;
  line = name: value: "${name}=${show value}\n";
  lines =
    set:
    lib.concatMapStrings (
      name:
      let
        value = set.${name};
      in
      if lib.isList value then lib.concatMapStrings (line name) value else line name value
    ) (lib.attrNames set);
  spaced = name: list: lib.optionalAttrs (list != [ ]) { ${name} = lib.concatStringsSep " " list; };

  head =
    unit: more:
    lines (
      lib.optionalAttrs (unit.description != "") { Description = unit.description; }
      // spaced "Documentation" unit.documentation
      // spaced "Wants" unit.wants
      // spaced "Requires" unit.requires
      // spaced "After" unit.after
      // spaced "Before" unit.before
      // spaced "BindsTo" unit.bindsTo
      // spaced "PartOf" unit.partOf
      // spaced "Conflicts" unit.conflicts
      // more
      // unit.unitConfig
    );

  # As systemd reads a quoted string; `%` stands for itself.
  quoted = text: builtins.toJSON (lib.replaceStrings [ "%" ] [ "%%" ] text);

  shell =
    name: text:
    pkgs.writeShellScript "unit-script-${name}" ''
      set -e

      ${text}'';

  service =
    name: unit:
    let
      always = [
        pkgs.coreutils
        pkgs.findutils
        pkgs.gnugrep
        pkgs.gnused
      ];
      environment = {
        PATH = lib.makeBinPath (unit.path ++ always);
      }
      // lib.filterAttrs (_: value: value != null) unit.environment;
    in
    ''
      [Unit]
      ${head unit (
        lib.optionalAttrs (unit.restartTriggers != [ ]) {
          X-Restart-Triggers = map toString unit.restartTriggers;
        }
      )}
      [Service]
      ${
        lib.concatMapStrings (key: "Environment=${quoted "${key}=${toString environment.${key}}"}\n") (
          lib.attrNames environment
        )
      }${lib.optionalString (!unit.restartIfChanged) "X-RestartIfChanged=false\n"}${
        lib.optionalString (!unit.stopIfChanged) "X-StopIfChanged=false\n"
      }${
        lines (
          lib.optionalAttrs (unit.preStart != "") {
            ExecStartPre = [ (shell "${name}-pre-start" unit.preStart) ];
          }
          // lib.optionalAttrs (unit.script != "") { ExecStart = shell "${name}-start" unit.script; }
          // unit.serviceConfig
        )
      }'';

  socket = _: unit: ''
    [Unit]
    ${head unit { }}
    [Socket]
    ${lines (
      lib.optionalAttrs (unit.listenStreams != [ ]) { ListenStream = unit.listenStreams; }
      // unit.socketConfig
    )}'';
in
{
  inherit service socket;
}
