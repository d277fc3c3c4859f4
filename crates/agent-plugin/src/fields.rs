//! What HTTP allows as the name and the value of a field.

/// Tells whether a text is a token, which a field name is.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Tells whether a text can be a field value: no control character but the tab.
pub(crate) fn is_value(value: &str) -> bool {
    value
        .bytes()
        .all(|byte| byte == b'\t' || !byte.is_ascii_control())
}
