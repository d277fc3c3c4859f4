//! Hooks that note what they are asked, and answer as a test wants.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::ready;
use std::rc::Rc;

use attest_engine::hooks::{
    AfterStep, Answer, BeforeStep, Farewell, Hooks, PipelineFacts, StepOutput, Stop, StopKind,
    Verdict,
};
use attest_receipt::receipt::{Decision, PluginRecord, Receipt};

/// What happens while an answer is awaited.
pub(crate) type Meanwhile = Box<dyn FnMut(&str)>;

/// Notes what it is asked, and stops at one place.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) notes: Rc<RefCell<Vec<String>>>,
    /// The start of a note, and how often it stands there before the run is stopped.
    pub(crate) stop_at: Option<(&'static str, usize, StopKind)>,
    /// The receipts that were shown.
    pub(crate) receipts: Vec<Receipt>,
    /// Everything that was told, as text.
    pub(crate) told: String,
    /// What steps wrote.
    pub(crate) outputs: Vec<Option<StepOutput>>,
    /// Done with each note, before the answer.
    pub(crate) meanwhile: Option<Meanwhile>,
    /// What was recorded of each build, in the order in which it is asked for.
    pub(crate) builds: VecDeque<Vec<PluginRecord>>,
    pub(crate) no_output: bool,
    pub(crate) stopped: Cell<Option<StopKind>>,
}

impl Asked {
    pub(crate) fn stopping(at: &'static str, kind: StopKind) -> Self {
        Self {
            stop_at: Some((at, 0, kind)),
            ..Self::default()
        }
    }

    fn answer(&mut self, note: String) -> Answer<'static> {
        let mut verdict = Verdict::Go;
        if let Some((at, before, kind)) = &mut self.stop_at
            && note.starts_with(*at)
        {
            match before.checked_sub(1) {
                Some(less) => *before = less,
                None => {
                    self.stopped.set(Some(*kind));
                    verdict = Verdict::Stop(Stop {
                        plugin: "policy".into(),
                        reason: "not today".into(),
                        kind: *kind,
                    });
                }
            }
        }
        if let Some(meanwhile) = &mut self.meanwhile {
            meanwhile(&note);
        }
        self.notes.borrow_mut().push(note);
        Box::pin(ready(verdict))
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }
}

pub(crate) fn record(name: &str, decision: Decision) -> PluginRecord {
    let unable = matches!(decision, Decision::Error | Decision::Skipped);
    PluginRecord {
        name: name.into(),
        version: "1".into(),
        protocol: 1,
        digest: format!("blake3:{}", "0".repeat(64)),
        decision,
        deterministic: true,
        reason: unable.then(|| "why".into()),
        annotation: None,
    }
}

impl Hooks for Asked {
    fn pipeline_validate<'a>(&'a mut self, facts: &'a PipelineFacts) -> Answer<'a> {
        self.told.push_str(&format!("{facts:?}"));
        let steps: Vec<_> = facts.steps.iter().map(|step| step.name.as_str()).collect();
        let path = facts.path.as_deref().unwrap_or("-");
        self.answer(format!("validate {path} {}", steps.join(",")))
    }

    fn step_pre<'a>(&'a mut self, facts: &'a BeforeStep<'a>) -> Answer<'a> {
        self.told.push_str(&format!("{facts:?}"));
        assert_eq!(facts.input_hash.len(), 64);
        assert_eq!(facts.pipeline_hash.len(), 64);
        let hit = if facts.cache_hit { " hit" } else { "" };
        self.answer(format!("pre {}{hit}", facts.step.name))
    }

    fn step_post<'a>(&'a mut self, facts: &'a AfterStep<'a>) -> Answer<'a> {
        self.told.push_str(&format!("{facts:?}"));
        self.outputs.push(facts.output.cloned());
        let result = facts.result;
        assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("", ""));
        let said = facts.output.map_or("?", |output| output.stdout.trim());
        let hit = if result.cache_hit { " hit" } else { "" };
        self.answer(format!("post {}{hit} {said}", result.name))
    }

    fn receipt_finalize<'a>(&'a mut self, receipt: &'a Receipt) -> Answer<'a> {
        self.told.push_str(&format!("{receipt:?}"));
        self.receipts.push(receipt.clone());
        self.answer("finalize".into())
    }

    fn records(&self) -> Option<Vec<PluginRecord>> {
        let decision = match self.stopped.get() {
            Some(StopKind::Denied) => Decision::Deny,
            Some(StopKind::Failed) => Decision::Error,
            None => Decision::Allow,
        };
        Some(vec![
            record("policy", decision),
            record("audit", Decision::Allow),
        ])
    }

    fn wants_output(&self) -> bool {
        !self.no_output
    }

    fn end_build(&mut self) -> Vec<PluginRecord> {
        self.builds.pop_front().unwrap_or_default()
    }

    fn finish(&mut self) -> Farewell<'_> {
        self.notes.borrow_mut().push("finish".into());
        Box::pin(ready(()))
    }
}
