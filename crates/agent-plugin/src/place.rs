//! Commands and working directories, by their text.

/// Where a working directory starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The package.
    Root,
    /// The data of the installed plugin.
    Data,
}

/// Judges a command: `None` is a bare name, a path is what follows `./`.
pub(crate) fn command(command: &str) -> Result<Option<&str>, &'static str> {
    if command.is_empty() {
        return Err("must not be empty");
    }
    if let Some(path) = command.strip_prefix("./") {
        return match path.rsplit(['/', '\\']).next() {
            None | Some("" | "." | "..") => Err("names a directory"),
            Some(_) => Ok(Some(path)),
        };
    }
    if matches!(command, "." | "..") {
        return Err("names a directory");
    }
    if command.contains(['/', '\\']) {
        return Err("a path must start with `./`");
    }
    if command.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("a bare name is one word without white space");
    }
    let mut chars = command.chars();
    match (chars.next(), chars.next()) {
        (Some(letter), Some(':')) if letter.is_ascii_alphabetic() => {
            Err("a drive has no place here")
        }
        _ => Ok(None),
    }
}

/// Takes a working directory apart.
pub(crate) fn cwd(cwd: &str) -> Option<(Base, &str)> {
    if let Some(rest) = cwd.strip_prefix("./") {
        return Some((Base::Root, rest));
    }
    let bases = [
        (Base::Root, "${PLUGIN_ROOT}"),
        (Base::Data, "${PLUGIN_DATA}"),
    ];
    bases.into_iter().find_map(|(base, name)| {
        let rest = cwd.strip_prefix(name)?;
        if rest.is_empty() {
            return Some((base, rest));
        }
        rest.strip_prefix('/').map(|rest| (base, rest))
    })
}

/// Tells whether a path, read from left to right, never climbs above where it starts.
pub(crate) fn is_inside(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return false,
            },
            _ => depth += 1,
        }
    }
    true
}
