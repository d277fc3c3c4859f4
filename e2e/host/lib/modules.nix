# The module system: modules declare options and define values; definitions are merged by type.
{ lib }:
let
  inherit (lib)
    showOption
    isAttrs
    isFunction
    isOption
    ;

  property = type: content: content // { _type = type; };
  kind = value: if isAttrs value then value._type or null else null;

  mkIf = condition: content: property "if" { inherit condition content; };
  mkMerge = contents: property "merge" { inherit contents; };
  mkOverride = priority: content: property "override" { inherit priority content; };
  mkOrder = priority: content: property "order" { inherit priority content; };

  defaultPriority = 100;
  optionDefault = 1500;

  # A definition of a set of options, with its conditions and priorities moved to the single values.
  pushDownProperties =
    value:
    if kind value == "merge" then
      lib.concatMap pushDownProperties value.contents
    else if kind value == "if" then
      map (lib.mapAttrs (_: mkIf value.condition)) (pushDownProperties value.content)
    else if kind value == "override" then
      map (lib.mapAttrs (_: mkOverride value.priority)) (pushDownProperties value.content)
    else
      [ value ];

  # The values that remain of a definition, with their priorities. The content of an override is looked at
  # only if the override wins: a default that cannot be evaluated does no harm where there is a value.
  discharge =
    file: value:
    if kind value == "merge" then
      lib.concatMap (discharge file) value.contents
    else if kind value == "if" then
      if value.condition == true then
        discharge file value.content
      else if value.condition == false then
        [ ]
      else
        throw "`mkIf' called with a non-Boolean condition, in `${file}'"
    else if kind value == "override" then
      [
        {
          inherit file;
          inherit (value) priority;
          value = value.content;
        }
      ]
    else
      [
        {
          inherit file value;
          priority = defaultPriority;
        }
      ];

  withOrder =
    def:
    if kind def.value == "order" then
      def
      // {
        order = def.value.priority;
        value = def.value.content;
      }
    else
      def // { order = 1000; };

  mergeDefinitions =
    loc: type: defs:
    let
      all = lib.concatMap (def: discharge def.file def.value) defs;
      highest = lib.foldl' (low: def: if def.priority < low then def.priority else low) 9999 all;
      chosen = map withOrder (lib.filter (def: def.priority == highest) all);
      ordered =
        if lib.all (def: def.order == 1000) chosen then
          chosen
        else
          builtins.sort (a: b: a.order < b.order) chosen;
      wrong = lib.filter (def: !(type.check def.value)) ordered;
      shown =
        def:
        let
          value = def.value;
        in
        if isFunction value then
          "<function>"
        else if lib.isDerivation value then
          "<derivation ${value.name}>"
        else if isAttrs value then
          "{ ${lib.concatMapStringsSep " " (name: "${name} = ...;") (lib.attrNames value)} }"
        else if lib.isList value then
          "[ ${toString (lib.length value)} elements ]"
        else if lib.isPath value then
          toString value
        else
          builtins.toJSON value;
    in
    rec {
      isDefined = ordered != [ ];
      mergedValue =
        if wrong != [ ] then
          throw "A definition for option `${showOption loc}' is not of type `${type.description}'. Definition values:${
            lib.concatMapStrings (def: "\n- In `${def.file}': ${shown def}") wrong
          }"
        else if isDefined then
          type.merge loc ordered
        else
          throw "The option `${showOption loc}' was accessed but has no value defined. Try setting the option.";
    };

  allowed = [
    "_file"
    "config"
    "freeformType"
    "imports"
    "key"
    "options"
  ];

  # A module in its long form.
  normal =
    file: module:
    if module ? options || module ? config then
      let
        unknown = lib.subtractLists allowed (lib.attrNames module);
      in
      if unknown != [ ] then
        throw "Module `${file}' has an unsupported attribute `${lib.head unknown}'. This is caused by introducing a top-level `config' or `options' attribute. Add configuration attributes immediately on the top level instead, or move all of them into the explicit `config' attribute."
      else
        {
          file = module._file or file;
          key = module.key or null;
          imports = module.imports or [ ];
          options = module.options or { };
          config = module.config or { };
          freeform = module.freeformType or null;
        }
    else
      {
        file = module._file or file;
        key = module.key or null;
        imports = module.imports or [ ];
        options = { };
        config = removeAttrs module [
          "_file"
          "freeformType"
          "imports"
          "key"
        ];
        freeform = module.freeformType or null;
      };

  # Calls a module with the arguments that it names.
  call =
    args: file: module:
    if isFunction module then
      let
        named = lib.functionArgs module;
        later =
          name:
          args.config._module.args.${name}
            or (throw "attribute `${name}' missing: module `${file}' asks for an argument that nobody gives");
      in
      normal file (
        module (lib.mapAttrs (name: _: if args ? ${name} then args.${name} else later name) named // args)
      )
    else if isAttrs module then
      normal file module
    else
      throw "module `${file}' does not look like a module: it is a ${builtins.typeOf module}";

  collect =
    args: file: module:
    let
      isFile = lib.isPath module || lib.isString module;
      source = if isFile then toString module else file;
      loaded = call args source (if isFile then import module else module);
    in
    [
      {
        key =
          if loaded.key != null then
            loaded.key
          else if isFile then
            source
          else
            null;
        inherit loaded;
      }
    ]
    ++ lib.concatMap (collect args loaded.file) loaded.imports;

  # The same file or key imported twice is one module.
  distinct =
    found:
    map (each: each.loaded) (
      lib.foldl' (
        kept: each:
        if each.key != null && lib.any (other: other.key == each.key) kept then kept else kept ++ [ each ]
      ) [ ] found
    );

  evalOption =
    loc: option: defs:
    let
      type = option.type or lib.types.unspecified;
      withDefault =
        lib.optional (option ? default) {
          file = "<default>";
          value = mkOverride optionDefault option.default;
        }
        ++ defs;
      evaluated = mergeDefinitions loc type withDefault;
      merged =
        if option.readOnly or false && lib.length defs > 1 then
          throw "The option `${showOption loc}' is read-only, but it's set multiple times."
        else if !evaluated.isDefined && type.emptyValue != null then
          type.emptyValue.value
        else
          evaluated.mergedValue;
    in
    (option.apply or lib.id) (
      builtins.addErrorContext "while evaluating the option `${showOption loc}':" merged
    );

  # Options below one place, and which definitions have no option.
  evalTree =
    loc: decls: defs:
    let
      split = lib.concatMap (
        def:
        map (value: {
          inherit (def) file;
          inherit value;
        }) (pushDownProperties def.value)
      ) defs;
      checked = map (
        def:
        if isAttrs def.value then
          def
        else
          throw "The option `${showOption loc}' in module `${def.file}' would be a parent of options, but its definition is a ${builtins.typeOf def.value}"
      ) split;
      declNames = lib.unique (lib.concatMap (decl: lib.attrNames decl.options) decls);
      defNames = lib.unique (lib.concatMap (def: lib.attrNames def.value) checked);
      at =
        name: source: what:
        lib.concatMap (
          each: lib.optional (each.${what} ? ${name}) (each // { ${what} = each.${what}.${name}; })
        ) source;
      branch =
        name:
        let
          here = loc ++ [ name ];
          own = at name decls "options";
          values = at name checked "value";
          options = lib.filter (decl: isOption decl.options) own;
        in
        if options == [ ] then
          evalTree here own values
        else if lib.length own > 1 then
          throw "The option `${showOption here}' in `${(lib.last own).file}' is already declared in `${(lib.head own).file}'."
        else
          {
            config = evalOption here (lib.head options).options values;
            unmatched = [ ];
          };
      branches = lib.genAttrs declNames branch;
    in
    {
      config = lib.mapAttrs (_: each: each.config) branches;
      unmatched =
        lib.concatMap (name: branches.${name}.unmatched) declNames
        ++ lib.concatMap (
          name:
          map (def: {
            path = loc ++ [ name ];
            inherit (def) file value;
          }) (at name checked "value")
        ) (lib.subtractLists declNames defNames);
    };

  evalModules =
    {
      modules,
      specialArgs ? { },
      prefix ? [ ],
    }:
    let
      args = {
        inherit lib config options;
      }
      // specialArgs;
      internal = {
        _file = "lib/modules.nix";
        options._module.args = lib.mkOption {
          type = lib.types.attrsOf lib.types.raw;
          default = { };
          internal = true;
          description = "Further arguments of modules.";
        };
      };
      all = distinct (lib.concatMap (collect args "<unknown-file>") ([ internal ] ++ modules));
      freeforms = lib.filter (type: type != null) (map (module: module.freeform) all);
      decls = map (module: { inherit (module) file options; }) all;
      defs = map (module: {
        inherit (module) file;
        value = module.config;
      }) all;
      tree = evalTree prefix decls defs;
      depth = lib.length prefix;
      below = path: lib.genList (at: lib.elemAt path (depth + at)) (lib.length path - depth);
      free = (lib.head freeforms).merge prefix (
        map (def: {
          inherit (def) file;
          value = lib.setAttrByPath (below def.path) def.value;
        }) tree.unmatched
      );
      declared = tree.config;
      isFree = freeforms != [ ];
      # What modules see of each other; whether every definition has its option is judged at the end.
      config = if isFree && tree.unmatched != [ ] then lib.recursiveUpdate free declared else declared;
      checked =
        if !isFree && tree.unmatched != [ ] then
          let
            first = lib.head tree.unmatched;
          in
          throw "The option `${showOption first.path}' does not exist. Definition values:\n- In `${first.file}'"
        else
          config;
      options = lib.foldl' lib.recursiveUpdate { } (map (decl: decl.options) decls);
    in
    {
      inherit options;
      config = removeAttrs checked [ "_module" ];
    };
in
{
  inherit
    evalModules
    mergeDefinitions
    mkIf
    mkMerge
    mkOverride
    mkOrder
    pushDownProperties
    ;
  mkDefault = mkOverride 1000;
  mkOptionDefault = mkOverride optionDefault;
  mkForce = mkOverride 50;
  mkBefore = mkOrder 500;
  mkAfter = mkOrder 1500;
}
