//! `pools`, `pause` and `resume`: the queues, and who may take from them.

use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Format, Ui, clock, exit, visible};
use forge_domain::PoolId;
use jiff::Timestamp;

use super::client;
use crate::layout::{age, cell, moment, wrap};
use crate::options::Connection;
use crate::view::Pool;

/// Lists the pools.
#[derive(Debug, Clone, Args)]
pub struct Pools {
    #[command(flatten)]
    connection: Connection,
}

impl Pools {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let pools = client(&self.connection, ui)?.pools().await?;
        if ui.format() == Format::Human {
            ui.data(ui.heading(&pool_row([
                "pool", "state", "slots", "working", "waiting", "retrying", "oldest",
            ])))?;
        }
        for pool in &pools {
            ui.record(&pool.json, |_| pool_lines(&pool.view, clock::now()))?;
        }
        Ok(exit::ok())
    }
}

/// Stops giving out jobs of a pool.
#[derive(Debug, Clone, Args)]
pub struct Pause {
    /// The pool's id
    #[arg(value_name = "POOL")]
    pool: PoolId,
    /// Why, at most 200 characters; whoever waits for a job is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Pause {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let body = self.reason.as_ref().map(|reason| {
            let reason = serde_json::json!({"reason": reason});
            strict_json::to_line(&reason)
        });
        let client = client(&self.connection, ui)?;
        let pool = client.pause(&self.pool, body.as_deref()).await?;
        ui.record(&pool.json, |_| pool_text(&pool.view))?;
        if pool.view.leased > 0 {
            ui.status(format!("{} running jobs go on", pool.view.leased));
        }
        Ok(exit::ok())
    }
}

/// Gives out jobs of a pool again.
#[derive(Debug, Clone, Args)]
pub struct Resume {
    /// The pool's id
    #[arg(value_name = "POOL")]
    pool: PoolId,
    #[command(flatten)]
    connection: Connection,
}

impl Resume {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let pool = client(&self.connection, ui)?.resume(&self.pool).await?;
        ui.record(&pool.json, |_| pool_text(&pool.view))?;
        Ok(exit::ok())
    }
}

/// One pool in a sentence.
fn pool_text(pool: &Pool) -> String {
    let id = visible(&pool.id);
    match pause_text(pool) {
        Some(pause) => wrap(&format!("pool {id} is {pause}"), "", "  "),
        None => format!("pool {id} gives out work"),
    }
}

/// Since when and why a pool is paused.
pub(crate) fn pause_text(pool: &Pool) -> Option<String> {
    let since = pool.paused_since.as_deref().map(moment);
    let since = since.map(|since| format!(" since {since}"));
    let reason = pool.pause_reason.as_deref().map(visible);
    let reason = reason.map(|reason| format!(": {reason}"));
    pool.paused.then(|| {
        format!(
            "paused{}{}",
            since.unwrap_or_default(),
            reason.unwrap_or_default()
        )
    })
}

fn pool_lines(pool: &Pool, now: Timestamp) -> String {
    let state = if pool.paused { "paused" } else { "open" };
    let oldest = pool.oldest_ready_at.as_deref();
    let oldest = oldest.map(|oldest| age(oldest, now));
    let mut lines = pool_row([
        &visible(&pool.id),
        state,
        &format!("{} of {}", pool.connected, pool.slots),
        &pool.working.to_string(),
        &pool.ready.to_string(),
        &pool.retrying.to_string(),
        oldest.as_deref().unwrap_or("-"),
    ]);
    lines.push('\n');
    if let Some(pause) = pause_text(pool) {
        lines.push_str(&wrap(&pause, "  ", "  "));
    }
    lines
}

fn pool_row([id, state, slots, working, ready, retrying, oldest]: [&str; 7]) -> String {
    let row = format!(
        "{} {} {} {} {} {} {}",
        cell(id, 22),
        cell(state, 6),
        cell(slots, 10),
        cell(working, 7),
        cell(ready, 8),
        cell(retrying, 8),
        cell(oldest, 13)
    );
    row.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_screen() {
        let long = "x".repeat(200);
        assert!(pool_row([&long; 7]).chars().count() <= cli_shell::layout::WIDTH);
    }
}
