# Which files of a folder become the source of a derivation.
{ lib }:
let
  below = folder: path: path == folder || lib.hasPrefix (folder + "/") path;
  of =
    value:
    if lib.isAttrs value && value._type or null == "fileset" then
      value
    else if !lib.isPath value then
      throw "lib.fileset: not a path and no file set"
    else if !builtins.pathExists value then
      throw "lib.fileset: ${toString value} does not exist"
    else
      {
        _type = "fileset";
        has = below (toString value);
        leadsTo = path: lib.hasPrefix (path + "/") (toString value);
      };
in
{
  unions =
    list:
    let
      sets = map of list;
    in
    {
      _type = "fileset";
      has = path: lib.any (set: set.has path) sets;
      leadsTo = path: lib.any (set: set.leadsTo path) sets;
    };
  toSource =
    { root, fileset }:
    let
      set = of fileset;
    in
    {
      outPath = builtins.path {
        name = "source";
        path = root;
        filter = path: _: set.has path || set.leadsTo path;
      };
    };
}
