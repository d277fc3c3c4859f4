# Lists, attribute sets and strings.
let
  inherit (builtins)
    all
    any
    attrNames
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    genList
    head
    isAttrs
    isBool
    isFloat
    isFunction
    isInt
    isList
    isPath
    isString
    length
    listToAttrs
    map
    mapAttrs
    match
    replaceStrings
    split
    sort
    stringLength
    substring
    tail
    toJSON
    ;

  concatMapStringsSep =
    separator: f: list:
    concatStringsSep separator (map f list);
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  nameValuePair = name: value: { inherit name value; };
  filterAttrs =
    keep: set:
    listToAttrs (
      concatMap (name: if keep name set.${name} then [ (nameValuePair name set.${name}) ] else [ ]) (
        attrNames set
      )
    );
  last = list: elemAt list (length list - 1);
  hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
  hasSuffix =
    suffix: text:
    let
      from = stringLength text - stringLength suffix;
    in
    from >= 0 && substring from (stringLength suffix) text == suffix;
  splitString = separator: text: filter isString (split (escapeRegex separator) text);
  characters = text: genList (at: substring at 1 text) (stringLength text);
  escape = list: replaceStrings list (map (c: "\\" + c) list);
  escapeRegex = escape (characters "\\[{()^$?*+|.");
  recursiveUpdate =
    left: right:
    left
    // mapAttrs (
      name: value:
      if left ? ${name} && isAttrs left.${name} && isAttrs value then
        recursiveUpdate left.${name} value
      else
        value
    ) right;
  escapeShellArg =
    value:
    let
      text = toString value;
    in
    if match "[[:alnum:],._+:@%/-]+" text == null then
      "'${replaceStrings [ "'" ] [ "'\\''" ] text}'"
    else
      text;
  setAttrByPath =
    path: value: if path == [ ] then value else { ${head path} = setAttrByPath (tail path) value; };
in
{
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    functionArgs
    genList
    head
    isAttrs
    isBool
    isFloat
    isFunction
    isInt
    isList
    isPath
    isString
    length
    listToAttrs
    mapAttrs
    replaceStrings
    sort
    stringLength
    substring
    tail
    ;
  inherit
    concatMapStringsSep
    escapeRegex
    filterAttrs
    hasPrefix
    hasSuffix
    last
    mapAttrsToList
    nameValuePair
    recursiveUpdate
    setAttrByPath
    splitString
    ;

  importJSON = path: builtins.fromJSON (builtins.readFile path);
  importTOML = path: builtins.fromTOML (builtins.readFile path);

  # lists
  concatMapStrings = concatMapStringsSep "";
  concatStrings = concatStringsSep "";
  optional = condition: value: if condition then [ value ] else [ ];
  optionals = condition: list: if condition then list else [ ];
  toList = value: if isList value then value else [ value ];
  unique = foldl' (found: value: if elem value found then found else found ++ [ value ]) [ ];
  imap1 = f: list: genList (at: f (at + 1) (elemAt list at)) (length list);
  subtractLists = drop: filter (value: !(elem value drop));
  flatten =
    let
      flatten = value: if isList value then concatMap flatten value else [ value ];
    in
    flatten;

  # attribute sets
  genAttrs = names: f: listToAttrs (map (name: nameValuePair name (f name)) names);
  mapAttrs' = f: set: listToAttrs (mapAttrsToList f set);
  optionalAttrs = condition: set: if condition then set else { };
  attrByPath =
    path: default: set:
    let
      go =
        path: set:
        if path == [ ] then
          set
        else if isAttrs set && set ? ${head path} then
          go (tail path) set.${head path}
        else
          default;
    in
    go path set;
  isDerivation = value: isAttrs value && value.type or null == "derivation";

  # strings
  inherit escapeShellArg;
  escapeShellArgs = concatMapStringsSep " " escapeShellArg;
  optionalString = condition: text: if condition then text else "";
  removePrefix =
    prefix: text:
    if hasPrefix prefix text then
      substring (stringLength prefix) (stringLength text - stringLength prefix) text
    else
      text;
  removeSuffix =
    suffix: text:
    if hasSuffix suffix text then substring 0 (stringLength text - stringLength suffix) text else text;
  boolToString = value: if value then "true" else "false";
  toInt =
    text:
    let
      parsed = if match "[0-9]+" text != null then builtins.fromJSON text else null;
    in
    if isInt parsed then parsed else throw "toInt: could not convert ${toJSON text} to an integer";
  makeBinPath = concatMapStringsSep ":" (package: "${package}/bin");
  getExe =
    package:
    "${package}/bin/${
      package.meta.mainProgram or (throw "getExe: package ${package.name} has no meta.mainProgram")
    }";
  getExe' = package: name: "${package}/bin/${name}";

  # packages: of two with the same program the one with the lower number is linked
  hiPrio =
    package:
    package
    // {
      meta = package.meta or { } // {
        priority = -10;
      };
    };

  # functions
  id = value: value;
  showOption = concatMapStringsSep "." (
    name: if match "[A-Za-z_][A-Za-z0-9_'-]*" name != null then name else toJSON name
  );

  licenses.asl20 = {
    shortName = "asl20";
    spdxId = "Apache-2.0";
  };
  platforms.linux = [
    "x86_64-linux"
    "aarch64-linux"
  ];
}
