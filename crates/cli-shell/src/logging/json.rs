//! One log event as one JSON object.

use std::fmt;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::clock;

/// Writes `{"time":..,"level":..,"msg":..,fields..}` and a line feed.
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        write!(
            writer,
            "{{\"time\":\"{}\",\"level\":\"{}\",\"msg\":{}{}",
            clock::now(),
            event.metadata().level(),
            Value::String(fields.message),
            fields.members,
        )?;
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                writer.write_str(&fields.fields)?;
            }
        }
        writer.write_str("}\n")
    }
}

/// Formats a span's fields as members, each with a comma in front.
pub(super) struct FieldsOnly;

impl<'writer> FormatFields<'writer> for FieldsOnly {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        record: R,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        record.record(&mut fields);
        writer.write_str(&fields.members)
    }

    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        record: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        record.record(&mut fields);
        current.fields.push_str(&fields.members);
        Ok(())
    }
}

/// The message, and the other fields as `,"name":value` in order.
#[derive(Default)]
struct Fields {
    message: String,
    members: String,
}

impl Fields {
    fn push(&mut self, field: &Field, value: impl Into<Value>) {
        let value = value.into();
        if field.name() == "message" {
            self.message = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            return;
        }
        let name = Value::String(field.name().to_owned());
        self.members.push_str(&format!(",{name}:{value}"));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        self.push(field, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(emit: impl FnOnce()) -> Vec<Value> {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(FieldsOnly)
            .event_format(JsonLine)
            .finish();
        tracing::subscriber::with_default(subscriber, emit);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn an_event_is_one_flat_object() {
        let lines = logged(|| {
            tracing::info!(
                component = "gate",
                event = "listening",
                port = 7,
                "gate lifecycle"
            );
        });
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["msg"], "gate lifecycle");
        assert_eq!(lines[0]["level"], "INFO");
        assert_eq!(lines[0]["component"], "gate");
        assert_eq!(lines[0]["port"], 7);
        lines[0]["time"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap();
    }

    #[test]
    fn span_fields_follow_and_text_cannot_break_the_line() {
        let lines = logged(|| {
            let span = tracing::info_span!("job", job.id = "a", attempt = tracing::field::Empty);
            span.record("attempt", 2);
            span.in_scope(|| tracing::warn!(reason = "x\n\"}{\u{1b}[0m", "odd\nmessage"));
        });
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["job.id"], "a");
        assert_eq!(lines[0]["attempt"], 2);
        assert_eq!(lines[0]["reason"], "x\n\"}{\u{1b}[0m");
        assert_eq!(lines[0]["msg"], "odd\nmessage");
    }
}
