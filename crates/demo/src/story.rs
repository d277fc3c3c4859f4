//! The demonstration step by step, and the way out of each step.

use std::time::Duration;

use cli_shell::{CliError, Secret, Ui, clock, env, visible};
use forge_client::{
    Change, GateClient, Settings, event_text, follow, stage_text, waiting_text, wrap,
};
use forge_domain::JobId;
use process_tree::{Capture, Spec, Wrapper, capture};
use serde_json::json;
use tls_files::PlainPolicy;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::Demo;
use crate::error::DemoError;
use crate::git::{Untouched, git};
use crate::place::{Place, REPOSITORY, random};
use crate::present::{self, Outcome};
use crate::project::Project;
use crate::server::{Server, first_step};

const POLL: Duration = Duration::from_millis(40);
/// Plugin, checks and one retry at their limits.
const LONGEST_JOB: Duration = Duration::from_secs(2 * 60 * 60);

/// The parts that run.
#[derive(Default)]
struct Running {
    servers: Vec<Server>,
}

/// Runs everything, ends everything, and shows the outcome.
pub(crate) async fn tell(demo: &Demo, ui: &Ui) -> Result<(), CliError> {
    let wrapper = Wrapper::current_exe().map_err(|source| DemoError::Program { source })?;
    // The wrapper's own path only works inside this process; the others need the real one.
    let program = std::env::current_exe().map_err(|source| DemoError::Program { source })?;
    let place = Place::make(program)?;
    let mut running = Running::default();
    let told = tokio::select! {
        told = steps(demo, ui, &place, &wrapper, &mut running) => told,
        () = interrupted() => Err(DemoError::Interrupted.into()),
    };
    let told = match told {
        Ok(outcome) => Ok(outcome),
        Err(error) => Err(with_logs(error, ui, &running)),
    };
    for server in running.servers.into_iter().rev() {
        server.stop().await;
    }
    let kept = demo.keep.then(|| place.path("."));
    let shown = match &told {
        Ok(outcome) => present::outcome(outcome, kept.as_deref(), ui),
        Err(_) => Ok(()),
    };
    if demo.keep {
        let program = place.program.clone();
        let kept = place.keep();
        present::kept(&kept, &program, told.as_ref().ok(), ui);
    } else {
        place.remove()?;
    }
    told?;
    shown
}

async fn steps(
    demo: &Demo,
    ui: &Ui,
    place: &Place,
    wrapper: &Wrapper,
    running: &mut Running,
) -> Result<Outcome, CliError> {
    let started = clock::instant();
    let project = Project::prepare(demo, place).await?;
    let before = Untouched::of(&project.repository).await?;
    let short = project.base.get(..12).unwrap_or(&project.base);
    let whose = if project.is_ours {
        "made a small repository"
    } else {
        "using the repository"
    };
    let folder = visible(&project.repository.display().to_string());
    step(ui, "1  ", &format!("{whose}: {folder}"));
    ui.status(format!(
        "   base commit {short} on {}",
        visible(&project.branch)
    ));

    if project.is_ours && demo.check.is_empty() {
        fails_before(&project, wrapper).await?;
        ui.status("   its test fails, as it should: that is the task");
    }

    let address = start_gate(demo, ui, place, wrapper, &project, running).await?;
    let client = client(place, &address)?;
    start_worker(demo, ui, place, wrapper, &project, &address, running).await?;
    wait_for_worker(&client, running).await?;

    step(
        ui,
        "4  ",
        &format!("task: {}", visible(&project.instruction)),
    );
    for check in &project.checks {
        step(
            ui,
            "   ",
            &format!("must pass: {}", visible(&check.join(" "))),
        );
    }
    let id = submit(&client, &project).await?;
    ui.status(format!("   job {id}"));
    let outcome = work(&client, &id, address, project, ui, running).await?;

    let after = Untouched::of(&outcome.project.repository).await?;
    before.prove(&after)?;
    ui.status(format!(
        "6  a candidate commit, {:.1} s after the start",
        started.elapsed().as_secs_f64()
    ));
    Ok(outcome)
}

/// Runs our check where the mistake still is, so that its success later means something. What a
/// user's own check says there is the user's business.
async fn fails_before(project: &Project, wrapper: &Wrapper) -> Result<(), CliError> {
    let argv = project.checks.iter().flatten().cloned();
    let spec = Spec::new(argv)
        .env(env::pick(["PATH"]))
        .cwd(&project.repository);
    let limits = Capture::new(first_step(), 64 * 1024);
    let exit = capture(wrapper, spec, limits, &CancellationToken::new())
        .await
        .map_err(|source| DemoError::Check { source })?
        .exit;
    expect(
        "the test on the base",
        "exit code 1",
        &exit.status.to_string(),
    )?;
    Ok(())
}

/// Says a step that may be longer than a line.
pub(crate) fn step(ui: &Ui, head: &str, text: &str) {
    ui.status(wrap(text, head, "   ").trim_end());
}

async fn start_gate(
    demo: &Demo,
    ui: &Ui,
    place: &Place,
    wrapper: &Wrapper,
    project: &Project,
    running: &mut Running,
) -> Result<String, CliError> {
    let config = place.write_gate_config("127.0.0.1:0", project, &demo.env)?;
    let argv = vec![
        place.program.clone().into(),
        "__gate".into(),
        "--config".into(),
        config.into(),
    ];
    let mut gate = Server::start(wrapper, "Gate", argv, &[], place.path("gate.log")).await?;
    let address = gate.event("listening", "address", "listen").await;
    let pid = gate.pid();
    running.servers.push(gate);
    let address = address?;
    ui.status(format!(
        "2  Gate listens on {} (process {pid})",
        visible(&address)
    ));
    // So that whoever keeps the state can start the same Gate again.
    place.write_gate_config(&address, project, &demo.env)?;
    Ok(address)
}

async fn start_worker(
    demo: &Demo,
    ui: &Ui,
    place: &Place,
    wrapper: &Wrapper,
    project: &Project,
    address: &str,
    running: &mut Running,
) -> Result<(), CliError> {
    let config = place.write_worker_config(address, project, &demo.env)?;
    let argv = vec![
        place.program.clone().into(),
        "__worker".into(),
        "--config".into(),
        config.into(),
        "--log-format".into(),
        "json".into(),
    ];
    let variables: Vec<String> = demo.env.iter().map(ToString::to_string).collect();
    let log = place.path("worker.log");
    let worker = Server::start(wrapper, "Worker", argv, &variables, log).await?;
    ui.status(format!(
        "3  Worker connects to it (process {})",
        worker.pid()
    ));
    running.servers.push(worker);
    Ok(())
}

fn client(place: &Place, address: &str) -> Result<GateClient, CliError> {
    let token = Secret::from_file(&place.path("owner.token")).map_err(CliError::config)?;
    Ok(GateClient::new(Settings {
        url: format!("http://{address}"),
        token,
        token_place: "the throwaway state".to_owned(),
        ca_file: None,
        plain: PlainPolicy::LoopbackOnly,
    })?)
}

async fn wait_for_worker(client: &GateClient, running: &mut Running) -> Result<(), CliError> {
    let connected = async {
        loop {
            let workers = client.workers().await?;
            if workers.iter().any(|worker| worker.view.connected) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let outcome: Result<_, DemoError> = tokio::select! {
        outcome = tokio::time::timeout(first_step(), connected) => match outcome {
            Ok(outcome) => outcome.map_err(|source| DemoError::Client {
                step: "wait for the Worker",
                source,
            }),
            Err(_) => Err(DemoError::Late {
                name: "Worker",
                what: "connect",
                seconds: first_step().as_secs(),
            }),
        },
        ended = running.first_end() => Err(ended),
    };
    Ok(outcome?)
}

async fn submit(client: &GateClient, project: &Project) -> Result<JobId, CliError> {
    let body = json!({
        "repository_id": REPOSITORY,
        "base_sha": project.base,
        "instruction": project.instruction,
        "tests": project.checks,
    });
    let failed = |source| DemoError::Client {
        step: "submit the task",
        source,
    };
    let submitted = client
        .submit_job(body.to_string().as_bytes(), &random()?)
        .await
        .map_err(failed)?;
    submitted.job.view.id.parse().map_err(|_| {
        CliError::from(DemoError::Broken {
            what: "the job's id",
            expected: "32 hex digits".to_owned(),
            found: visible(&submitted.job.view.id),
        })
    })
}

/// Follows the job to its end and proves what it made.
async fn work(
    client: &GateClient,
    id: &JobId,
    address: String,
    project: Project,
    ui: &Ui,
    running: &mut Running,
) -> Result<Outcome, CliError> {
    let mut head = "5";
    let mut tell = |change| {
        let line = match change {
            Change::Event(event) => event_text(&event.view),
            Change::Stage { activity, .. } => stage_text(&activity),
            Change::Waiting { waiting, is_new } if is_new && !waiting.is_about_to_end() => {
                waiting_text(&waiting)
            }
            Change::Waiting { .. } => return Ok(()),
            Change::Lost(error) => format!("{error}; still trying"),
            Change::Found => "the Gate answers again".to_owned(),
        };
        ui.status(format!("{}  {line}", std::mem::replace(&mut head, " ")));
        Ok(())
    };
    let failed = |step| move |source| DemoError::Client { step, source };
    let job = tokio::select! {
        job = follow(client, id, LONGEST_JOB, POLL, &mut tell) => {
            job.map_err(failed("follow the job"))?.view
        }
        ended = running.first_end() => return Err(ended.into()),
    };
    let result = client
        .result(id)
        .await
        .map_err(failed("read the result"))?
        .view;
    let (Some(candidate), Some(reference)) = (&job.candidate_sha, job.candidate_ref()) else {
        ui.status(forge_client::result_text(&result));
        return Err(DemoError::Job {
            status: visible(&job.status),
        }
        .into());
    };
    let repository = &project.repository;
    expect(
        "the ref in the repository names the candidate",
        candidate,
        &git(repository, &["rev-parse", "--verify", &reference]).await?,
    )?;
    expect(
        "the candidate has one parent, the base",
        &project.base,
        &git(
            repository,
            &["show", "--no-patch", "--format=%P", candidate],
        )
        .await?,
    )?;
    let passed = result.attempts.iter().flat_map(|attempt| &attempt.evidence);
    let passed = passed.filter(|record| {
        record.reason == "scoped_check_passed" && record.candidate_sha.as_ref() == Some(candidate)
    });
    expect(
        "checks that passed for this candidate",
        &project.checks.len().to_string(),
        &passed.count().to_string(),
    )?;
    let arguments = [
        "diff",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        &project.base,
        candidate,
    ];
    Ok(Outcome {
        address,
        candidate: candidate.clone(),
        subject: git(
            repository,
            &["show", "--no-patch", "--format=%s", candidate],
        )
        .await?,
        diff: git(repository, &arguments).await?,
        reference,
        job,
        result,
        project,
    })
}

fn expect(what: &'static str, expected: &str, found: &str) -> Result<(), DemoError> {
    if expected == found {
        return Ok(());
    }
    Err(DemoError::Broken {
        what,
        expected: visible(expected),
        found: visible(found),
    })
}

impl Running {
    /// Waits for the first part that ends although nobody asked it to.
    async fn first_end(&mut self) -> DemoError {
        match self.servers.as_mut_slice() {
            [gate, worker] => tokio::select! {
                ended = gate.ended() => ended,
                ended = worker.ended() => ended,
            },
            [one] => one.ended().await,
            _ => std::future::pending().await,
        }
    }
}

/// Shows what the parts complained of before the error.
fn with_logs(error: CliError, ui: &Ui, running: &Running) -> CliError {
    let first = error.messages().into_iter().next();
    if running.servers.is_empty() || first.as_deref() == Some("interrupted") {
        return error;
    }
    for server in &running.servers {
        let said = server.complaints();
        if !said.is_empty() {
            ui.status(format!("the {} says:\n{}", server.name(), said.trim_end()));
        }
    }
    error.hint("`--keep` leaves the whole state for a closer look")
}

/// Waits for Ctrl-C or a request to end.
pub(crate) async fn interrupted() {
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    let hang_up = async {
        match signal(SignalKind::hangup()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminate => {}
        () = hang_up => {}
    }
}
