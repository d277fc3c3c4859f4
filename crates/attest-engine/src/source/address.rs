//! The address of a repository, freed of what is nobody else's business.

/// Longest address that is recorded.
const LONGEST: usize = 2048;

/// Returns an address without credentials, query and fragment, or nothing where that cannot be
/// told for sure: other schemes, local paths, and addresses whose parts are not what they seem
/// (a password with a `/` in it looks like a host and a path).
#[must_use]
pub fn repository_address(raw: &str) -> Option<String> {
    let unprintable = |c: char| c.is_control() || c.is_whitespace();
    if raw.len() > LONGEST || raw.chars().any(unprintable) {
        return None;
    }
    let raw = raw.split(['?', '#']).next()?;
    if let Some((scheme, rest)) = raw.split_once("://") {
        if !["https", "http", "ssh"].contains(&scheme) {
            return None;
        }
        let (authority, path) = rest.split_once('/')?;
        let host = authority.rsplit('@').next()?;
        let (name, port) = split_port(host);
        let fits = is_host(name) && port.is_none_or(is_port) && is_path(path);
        return fits.then(|| format!("{scheme}://{host}/{path}"));
    }
    let (_, remote) = raw.split_once('@')?;
    let (host, path) = remote.split_once(':')?;
    (is_host(host) && is_path(path)).then(|| format!("ssh://{host}/{path}"))
}

/// Splits `host:port`; the colons inside the brackets of an IPv6 address are its own.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

fn is_host(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let address = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
    match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(inner) => !inner.is_empty() && inner.bytes().all(address),
        None => !host.is_empty() && host.bytes().all(plain),
    }
}

fn is_port(port: &str) -> bool {
    port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_what_is_not_the_repository() {
        for (raw, kept) in [
            (
                "https://user:canary@example.com/team/repo.git?token=canary#canary",
                Some("https://example.com/team/repo.git"),
            ),
            (
                "https://canary@example.com:8443/r",
                Some("https://example.com:8443/r"),
            ),
            (
                "git@example.com:team/repo.git",
                Some("ssh://example.com/team/repo.git"),
            ),
            ("ssh://git@[::1]:22/r", Some("ssh://[::1]:22/r")),
            ("http://example.com/r", Some("http://example.com/r")),
            // The first slash of a password looks like the end of the authority.
            ("https://user:can/ary@example.com/r", None),
            ("https://user:1/canary@example.com/r", None),
            ("a@canary@example.com:r", None),
            ("https:///r", None),
            ("https://example.com", None),
            ("file:///srv/repo", None),
            ("ext::sh -c evil", None),
            ("git://example.com/r", None),
            ("/srv/repo", None),
            ("../repo", None),
            ("C:/repo", None),
            ("https://example.com/a b", None),
            ("https://example.com/a\u{7}", None),
            ("", None),
        ] {
            assert_eq!(repository_address(raw).as_deref(), kept, "{raw}");
        }
        let long = format!("https://example.com/{}", "a".repeat(LONGEST));
        assert_eq!(repository_address(&long), None);
    }
}
