# Derivation paths of the same configurations, by one library or another: see `compare`.
{
  lib,
  system ? "x86_64-linux",
}:
let
  host = import ./lib;
  pkgs = import ./pkgs {
    inherit lib system;
    here = { };
    nixosSystem = evaluate;
  };
  evaluate = import ./nixos/system.nix {
    inherit lib;
    pkgsFor.${system} = pkgs;
  };
  package =
    name:
    derivation {
      inherit name system;
      builder = "/bin/sh";
    }
    // {
      meta.mainProgram = name;
    };
  cases = import ../../nixos-modules/tests/refused.nix;
  configurations = cases.accepted // host.mapAttrs (_: case: case.module) cases.evaluation;
in
host.mapAttrs (
  _: module:
  let
    tried =
      builtins.tryEval
        (evaluate {
          inherit pkgs;
          modules = [
            ../../nixos-modules/appliance.nix
            {
              services.agent-forge.package = package "agent-forge";
              services.forge-gate.package = package "forge-gate";
              services.forge-worker.package = package "forge-worker";
              programs.forge.package = package "forge";
            }
            module
          ];
        }).config.system.build.toplevel.drvPath;
  in
  if tried.success then tried.value else "refused"
) configurations
