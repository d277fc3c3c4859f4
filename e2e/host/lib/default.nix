# The functions of `nixpkgs.lib` that this repository uses, under their names there.
let
  basic = import ./basic.nix;
  parts = basic // {
    types = import ./types.nix { inherit lib; };
    fileset = import ./fileset.nix { inherit lib; };
  };
  options = import ./options.nix { inherit lib; };
  modules = import ./modules.nix { inherit lib; };
  lib = parts // options // modules;
in
lib
