//! Where the key of the secrets lies: in the system's keyring, or in a file where there is none or it does not answer.
//!
//! With a real keyring, which needs no display:
//!
//! ```sh
//! apt-get install --no-install-recommends gnome-keyring dbus
//! dbus-run-session -- sh -c 'echo | gnome-keyring-daemon --unlock --components=secrets >/dev/null &&
//!   cargo test --package toolshelf --test vault_key -- --ignored'
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A data folder, and the session bus that programs over it find.
struct Computer {
    data: tempfile::TempDir,
    bus: String,
}

impl Computer {
    fn new(bus: impl Into<String>) -> Self {
        Self { data: tempfile::tempdir().unwrap(), bus: bus.into() }
    }

    fn run(&self, place: &str, args: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolshelf"))
            .env_clear()
            .env("TOOLSHELF_DATA_DIR", self.data.path())
            .env("TOOLSHELF_CACHE_DIR", self.data.path().join("cache"))
            .env("TOOLSHELF_CONFIG", self.data.path().join("toolshelf.toml"))
            .env("TOOLSHELF_VAULT_KEY", place)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus)
            .arg("--json")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn set(&self, place: &str) -> Value {
        self.answer(place, &["secret", "set", "api"], "opensesame")
    }

    fn answer(&self, place: &str, args: &[&str], input: &str) -> Value {
        let output = self.run(place, args, input);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// What `doctor` says of the key.
    fn doctor(&self, place: &str) -> (String, Value) {
        let report = self.answer(place, &["doctor"], "");
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "vault key").unwrap();
        (check["about"].as_str().unwrap().to_owned(), check["holds"].clone())
    }

    fn has_file(&self) -> bool {
        self.data.path().join("vault.key").exists()
    }
}

#[test]
fn where_no_keyring_answers_the_key_is_in_a_file_and_nobody_waits_without_end() {
    let folder = tempfile::tempdir().unwrap();
    // One that takes connections and never says a word, as one does that waits for somebody.
    let silent = folder.path().join("bus");
    let _listener = UnixListener::bind(&silent).unwrap();
    for bus in [format!("unix:path={}", silent.display()), "unix:path=/no/such/bus".to_owned()] {
        let computer = Computer::new(bus.as_str());
        let (about, holds) = computer.doctor("auto");
        assert!(
            holds.is_null() && about.contains("it will lie in /") && about.contains("keyring cannot be used"),
            "{about}"
        );
        let refused = computer.set("keyring");
        assert_eq!(refused["refused"], "storage-unavailable", "{refused}");
        assert!(refused["why"].as_str().unwrap().contains("keyring cannot be used"), "{refused}");
        assert!(!computer.has_file(), "{bus}");
        assert_eq!(computer.set("auto")["ok"], true, "{bus}");
        assert!(computer.has_file(), "{bus}");
        // A file that is in use stays in use.
        assert_eq!(computer.set("keyring")["ok"], true);
        let (about, holds) = computer.doctor("keyring");
        assert!(holds == true && about.contains("secret move-key keyring"), "{about}");
        let refused = computer.answer("auto", &["secret", "move-key", "keyring"], "");
        assert_eq!(refused["refused"], "storage-unavailable", "{refused}");
        assert!(computer.has_file(), "a key that cannot be moved stays where it was");
        // A key that is lost is named, and no new one takes its place.
        fs::remove_file(computer.data.path().join("vault.key")).unwrap();
        assert_eq!(computer.set("file")["refused"], "vault-damaged");
        assert_eq!(computer.set("auto")["refused"], "storage-unavailable");
        assert!(!computer.has_file(), "{bus}");
    }
}

#[test]
#[ignore = "needs a session with a keyring that is unlocked; the command is above"]
fn a_real_keyring_keeps_the_key_and_gives_it_back() {
    let computer = Computer::new(std::env::var("DBUS_SESSION_BUS_ADDRESS").unwrap());
    let (about, holds) = computer.doctor("auto");
    assert!(holds.is_null() && about.contains("it will lie in the system's keyring"), "{about}");
    assert_eq!(computer.set("auto")["ok"], true);
    assert!(!computer.has_file());
    assert_eq!(computer.doctor("auto"), ("in the system's keyring".to_owned(), true.into()));
    // Whoever may not ask the keyring makes no key of his own.
    assert_eq!(computer.set("file")["refused"], "vault-damaged");
    assert_eq!(computer.set("keyring")["ok"], true);

    let to_file = computer.answer("auto", &["secret", "move-key", "file"], "");
    assert_eq!((&to_file["from"], &to_file["to"]), (&"keyring".into(), &"file".into()), "{to_file}");
    assert!(computer.has_file());
    assert_eq!(computer.set("file")["ok"], true);
    let to_keyring = computer.answer("auto", &["secret", "move-key", "keyring"], "");
    assert_eq!((&to_keyring["from"], &to_keyring["to"]), (&"file".into(), &"keyring".into()), "{to_keyring}");
    assert!(!computer.has_file());
    assert_eq!(computer.set("auto")["ok"], true);
    // The folder may be moved: what the keyring holds is named by the key, not by where the vault lies.
    let moved = Computer::new(computer.bus.as_str());
    fs::copy(computer.data.path().join("vault.json"), moved.data.path().join("vault.json")).unwrap();
    assert_eq!(moved.set("keyring")["ok"], true);
    assert_eq!(moved.answer("auto", &["secret", "move-key", "file"], "")["from"], "keyring");
}
