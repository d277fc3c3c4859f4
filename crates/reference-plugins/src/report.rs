//! The report of an edit, as a program writes it into a file.

use strict_json::{Element, FieldError, Fields};

/// Takes the report's two fields. Its texts are judged where every plugin's are.
pub(crate) fn take_report(fields: &mut Fields) -> Result<(String, Vec<String>), FieldError> {
    let summary = fields.text("summary")?;
    let changes = fields
        .array("changes")?
        .into_iter()
        .map(Element::text)
        .collect::<Result<_, _>>()?;
    Ok((summary, changes))
}
