# A NixOS configuration as far as the modules of this repository reach: options, then one tree of files.
{ lib, pkgsFor }:
{
  modules,
  specialArgs ? { },
  pkgs ? null,
}:
lib.evalModules {
  inherit specialArgs;
  modules = [
    ./options.nix
    ./tree.nix
  ]
  ++ [
    (
      { config, ... }:
      {
        _module.args.pkgs = if pkgs != null then pkgs else pkgsFor.${config.nixpkgs.hostPlatform};
      }
    )
  ]
  ++ modules;
}
