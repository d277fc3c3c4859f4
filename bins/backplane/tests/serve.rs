//! The program as a registry: what it logs, how it ends, and what a service manager passes and hears.

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::path::Path;
    use std::process::{Child, Command, Output, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};
    use serde_json::Value;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_backplane");
    /// Longer than anything here should take on a loaded machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts the program that it is about"
    )]
    fn program(program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A registry that runs; it is killed if a test fails.
    struct Running {
        child: Child,
        lines: Receiver<String>,
        log: String,
        address: String,
    }

    impl Drop for Running {
        fn drop(&mut self) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }

    impl Running {
        fn start(root: &Path) -> Self {
            let mut command = program(PROGRAM);
            command.args(["serve", "--listen", "127.0.0.1:0", "--root"]);
            Self::of(command.arg(root))
        }

        fn of(command: &mut Command) -> Self {
            let mut child = command.spawn().unwrap();
            let stderr = BufReader::new(child.stderr.take().unwrap());
            let (sender, lines) = channel();
            std::thread::spawn(move || {
                for line in stderr.lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
            let mut running = Self {
                child,
                lines,
                log: String::new(),
                address: String::new(),
            };
            let listening = running.event("listening");
            listening["address"]
                .as_str()
                .unwrap()
                .clone_into(&mut running.address);
            running
        }

        /// Waits for an event in the log, of which every line is an object.
        fn event(&mut self, name: &str) -> Value {
            loop {
                let line = self.lines.recv_timeout(PATIENCE);
                let line = line.unwrap_or_else(|_| panic!("no {name} in {}", self.log));
                self.log.push_str(&line);
                self.log.push('\n');
                let event: Value = serde_json::from_str(&line).unwrap();
                if event["event"] == name {
                    return event;
                }
            }
        }

        fn ask(&self, request: &str) -> String {
            let mut stream = TcpStream::connect(&self.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }

        fn stop(mut self) -> String {
            kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
            self.event("stopped");
            let status = self.child.wait().unwrap();
            assert_eq!(status.code(), Some(0), "{}", self.log);
            std::mem::take(&mut self.log)
        }
    }

    #[test]
    fn it_logs_a_line_for_each_request_and_nothing_that_a_client_wrote() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        let registry = Running::start(&root);
        assert!(registry.log.contains("admin.token"), "{}", registry.log);
        let token = fs_err::read_to_string(root.join("admin.token")).unwrap();
        let token = token.trim_end();
        let host = &registry.address;
        let answer = registry.ask(&format!(
            "GET /plugin-protocol/v1/plugins/canary-path/releases?limit=5 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nX-Request-Id: canary-header\r\nConnection: close\r\n\r\n"
        ));
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        let body = "{\"canary\":\"canary-body\"}";
        let answer = registry.ask(&format!(
            "POST /plugin-protocol/v1/releases?canary=query HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer canary-token\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ));
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        let log = registry.stop();
        assert!(!log.contains(token) && !log.contains("canary"), "{log}");
        let requests: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|line: &Value| line["event"] == "request")
            .collect();
        let [first, second] = &requests[..] else {
            panic!("{log}");
        };
        assert_eq!(
            first["route"],
            "/plugin-protocol/v1/plugins/{plugin_id}/releases"
        );
        assert_eq!(
            (&first["status"], &first["token"]),
            (&404.into(), &"admin".into())
        );
        assert_eq!(second["code"], "unauthorized");
        assert_ne!(first["request_id"], second["request_id"]);
    }

    #[test]
    fn it_serves_on_the_socket_that_was_passed_and_says_when_it_is_ready_and_stops() {
        let place = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let manager = UnixDatagram::bind(place.path().join("notify")).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let hear = || {
            let mut text = [0; 256];
            let length = manager.recv(&mut text).unwrap();
            String::from_utf8(text[..length].to_vec()).unwrap()
        };
        let script = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" serve --root \"$1\"";
        let mut command = program("/bin/sh");
        command
            .args(["-c", script, PROGRAM])
            .arg(place.path().join("root"))
            .env("NOTIFY_SOCKET", place.path().join("notify"))
            .stdin(Stdio::from(OwnedFd::from(listener)));
        let registry = Running::of(&mut command);
        assert_eq!(hear(), "READY=1\n");
        assert_eq!(registry.address, address);
        let answer = registry.ask(&format!(
            "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        ));
        assert!(answer.ends_with("{\"status\":\"ready\"}\n"), "{answer}");
        registry.stop();
        assert_eq!(hear(), "STOPPING=1\n");
    }

    fn judged(text: &str) -> Output {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("registry.toml");
        fs_err::write(&file, text).unwrap();
        let mut command = program(PROGRAM);
        command.args(["serve", "--check-config"]).arg(&file);
        command.output().unwrap()
    }

    #[test]
    fn a_configuration_is_judged_alone() {
        let token = "[[tokens]]\nname = \"ci\"\nscopes = [\"publish\"]\n";
        // Neither the file nor the variable has to be there.
        for source in [
            "token_file = \"/nonexistent\"",
            "token_env = \"NOT_SET_ANYWHERE\"",
        ] {
            let good = judged(&format!("{token}{source}\n"));
            assert_eq!(good.status.code(), Some(0), "{good:?}");
        }
        let bad = judged(&format!("{token}token = \"canary\"\n"));
        assert_eq!(bad.status.code(), Some(2));
        let said = String::from_utf8(bad.stderr).unwrap();
        assert!(
            said.contains("tokens[0]") && !said.contains("canary"),
            "{said}"
        );
        let bad = judged("listen = \"0.0.0.0:1\"\n");
        assert_eq!(bad.status.code(), Some(2), "{bad:?}");
    }

    #[test]
    fn what_it_cannot_serve_ends_it_with_2() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        let registry = Running::start(&root);
        let mut second = program(PROGRAM);
        second.args(["serve", "--listen", "127.0.0.1:0", "--root"]);
        let second = second.arg(&root).output().unwrap();
        assert_eq!(second.status.code(), Some(2), "{second:?}");
        let said = String::from_utf8(second.stderr).unwrap();
        assert!(said.contains("another running registry"), "{said}");
        registry.stop();
        let none = program(PROGRAM).arg("serve").output().unwrap();
        assert_eq!(none.status.code(), Some(2));
    }
}
