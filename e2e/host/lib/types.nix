# Types of options: what a definition must be, and how several become one.
{ lib }:
let
  inherit (lib)
    showOption
    isString
    isAttrs
    isList
    ;

  showFiles = defs: lib.concatMapStrings (def: "\n- In `${def.file}': ${preview def.value}") defs;
  preview =
    value:
    let
      tried = builtins.tryEval (builtins.deepSeq value (builtins.toJSON value));
    in
    if lib.isFunction value then
      "<function>"
    else if lib.isDerivation value then
      "<derivation ${value.name}>"
    else if isAttrs value || isList value then
      if builtins.any lib.isFunction (if isList value then value else lib.attrValues value) then
        "<value>"
      else if tried.success then
        tried.value
      else
        "<value>"
    else if lib.isPath value then
      toString value
    else
      builtins.toJSON value;

  conflict =
    loc: defs:
    throw "The option `${showOption loc}' has conflicting definition values:${showFiles defs}";

  mergeEqual =
    loc: defs:
    let
      first = (lib.head defs).value;
    in
    if lib.all (def: def.value == first) (lib.tail defs) then first else conflict loc defs;

  mergeOne = loc: defs: if lib.length defs == 1 then (lib.head defs).value else conflict loc defs;

  mkOptionType =
    {
      name,
      description ? name,
      check ? (_: true),
      merge ? mergeEqual,
      emptyValue ? null,
    }:
    {
      _type = "option-type";
      inherit
        name
        description
        check
        merge
        emptyValue
        ;
    };

  simple =
    name: description: check:
    mkOptionType { inherit name description check; };

  # One element of a list or attribute set: its own properties count, and it may vanish.
  element =
    loc: type: defs:
    let
      evaluated = lib.mergeDefinitions loc type defs;
    in
    {
      inherit (evaluated) isDefined;
      value = evaluated.mergedValue;
    };

  within =
    low: high: name:
    simple name "integer between ${toString low} and ${toString high} (both inclusive)" (
      value: lib.isInt value && value >= low && value <= high
    );

  separated =
    separator: name: description:
    mkOptionType {
      inherit name description;
      check = isString;
      merge = _: defs: lib.concatStringsSep separator (map (def: def.value) defs);
    };

  types = rec {
    inherit mkOptionType;

    raw = mkOptionType {
      name = "raw";
      description = "raw value";
      merge = mergeOne;
    };
    unspecified = simple "unspecified" "unspecified value" (_: true);
    bool = simple "bool" "boolean" lib.isBool;
    int = simple "int" "signed integer" lib.isInt;
    float = simple "float" "floating point number" lib.isFloat;
    ints = {
      between = low: high: within low high "intBetween";
      unsigned = simple "unsignedInt" "unsigned integer, meaning >=0" (
        value: lib.isInt value && value >= 0
      );
      positive = simple "positiveInt" "positive integer, meaning >0" (
        value: lib.isInt value && value > 0
      );
      u16 = within 0 65535 "unsignedInt16";
    };
    port = within 0 65535 "unsignedInt16";
    str = simple "str" "string" isString;
    nonEmptyStr = simple "nonEmptyStr" "non-empty string" (
      value: isString value && builtins.match "[ \t\n]*" value == null
    );
    singleLineStr = simple "singleLineStr" "(optionally newline-terminated) single-line string" (
      value: isString value && builtins.match "[^\n\r]*\n?" value != null
    );
    strMatching =
      pattern:
      simple "strMatching ${builtins.toJSON pattern}" "string matching the pattern ${pattern}" (
        value: isString value && builtins.match pattern value != null
      );
    lines = separated "\n" "separatedString" "strings concatenated with \"\\n\"";
    path = simple "path" "absolute path" (
      value:
      lib.isPath value || isString value && lib.hasPrefix "/" value || isAttrs value && value ? outPath
    );
    package = mkOptionType {
      name = "package";
      check = lib.isDerivation;
      merge = mergeOne;
    };
    enum =
      values:
      simple "enum" "one of ${lib.concatMapStringsSep ", " builtins.toJSON values}" (
        value: lib.elem value values
      );
    attrs = mkOptionType {
      name = "attrs";
      description = "attribute set";
      check = isAttrs;
      merge = _: lib.foldl' (all: def: all // def.value) { };
    };

    nullOr =
      type:
      mkOptionType {
        name = "nullOr";
        description = "null or ${type.description}";
        check = value: value == null || type.check value;
        merge =
          loc: defs:
          let
            nulls = lib.filter (def: def.value == null) defs;
          in
          if lib.length nulls == lib.length defs then
            null
          else if nulls == [ ] then
            type.merge loc defs
          else
            conflict loc defs;
      };

    either =
      left: right:
      mkOptionType {
        name = "either";
        description = "${left.description} or ${right.description}";
        check = value: left.check value || right.check value;
        merge =
          loc: defs:
          if lib.all (def: left.check def.value) defs then
            left.merge loc defs
          else if lib.all (def: right.check def.value) defs then
            right.merge loc defs
          else
            mergeOne loc defs;
      };
    oneOf = list: lib.foldl' either (lib.head list) (lib.tail list);

    listOf =
      type:
      mkOptionType {
        name = "listOf";
        description = "list of ${type.description}";
        check = isList;
        emptyValue.value = [ ];
        merge =
          loc: defs:
          lib.concatMap (
            def:
            lib.concatLists (
              lib.imap1 (
                at: value:
                let
                  found = element (loc ++ [ "[definition ${toString at}]" ]) type [
                    {
                      inherit (def) file;
                      inherit value;
                    }
                  ];
                in
                lib.optional found.isDefined found.value
              ) def.value
            )
          ) defs;
      };

    nonEmptyListOf =
      type:
      let
        list = listOf type;
      in
      list
      // {
        description = "non-empty ${list.description}";
        emptyValue = null;
        check = value: list.check value && value != [ ];
      };

    attrsOf =
      type:
      mkOptionType {
        name = "attrsOf";
        description = "attribute set of ${type.description}";
        check = isAttrs;
        emptyValue.value = { };
        merge =
          loc: defs:
          let
            split = lib.concatMap (
              def:
              map (value: {
                inherit (def) file;
                inherit value;
              }) (lib.pushDownProperties def.value)
            ) defs;
            names = lib.unique (lib.concatMap (def: lib.attrNames def.value) split);
            found = lib.genAttrs names (
              name:
              element (loc ++ [ name ]) type (
                lib.concatMap (
                  def:
                  lib.optional (def.value ? ${name}) {
                    inherit (def) file;
                    value = def.value.${name};
                  }
                ) split
              )
            );
          in
          lib.mapAttrs (_: each: each.value) (lib.filterAttrs (_: each: each.isDefined) found);
      };

    submodule =
      module:
      mkOptionType {
        name = "submodule";
        description = "submodule";
        check = value: isAttrs value || lib.isFunction value;
        emptyValue.value = { };
        merge =
          loc: defs:
          (lib.evalModules {
            prefix = loc;
            specialArgs.name = lib.last loc;
            modules =
              lib.toList module
              ++ map (
                def:
                if lib.isFunction def.value then
                  def.value
                else
                  {
                    _file = def.file;
                    config = def.value;
                  }
              ) defs;
          }).config;
      };
  };
in
types
