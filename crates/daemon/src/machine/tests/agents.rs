//! Agents: what a command gets, and what becomes of what it says.

use super::*;

#[test]
fn a_command_gets_the_task_its_root_and_the_variables_that_are_named() {
    on_one_thread(async {
        let world = World::new();
        let script = r#"cat; printf '|%s|' "$(pwd -P)"; env | cut -d= -f1 | sort | tr '\n' ' '"#;
        let config = format!(
            "[agents.usual]\ncommand = {0}\n[agents.none]\ncommand = {0}\nenv = []\n[agents.some]\ncommand = {0}\n\
             env = [\"CARGO_PKG_NAME\", \"NOT_SET_ANYWHERE\"]",
            json!(["/bin/sh", "-c", script])
        );
        let life = world.try_begin(&config).await.unwrap();
        let task = "a task\nof two lines ü";
        for (agent, has, has_not) in [
            ("usual", &["PATH", "HOME"][..], "CARGO_PKG_NAME"),
            ("some", &["CARGO_PKG_NAME"], "HOME"),
            ("none", &[], "HOME"),
        ] {
            let view = life.run(agent, task).await;
            assert_eq!(view.state, TaskState::Completed, "{view:?}");
            let answer = view.answer.unwrap();
            let parts: Vec<_> = answer.split('|').collect();
            assert_eq!(parts[..2], [task, world.root.to_str().unwrap()]);
            let variables: Vec<_> = parts[2].split_whitespace().collect();
            assert!(has.iter().all(|name| variables.contains(name)), "{agent}: {variables:?}");
            assert!(!variables.contains(&has_not), "{agent}: {variables:?}");
        }
    });
}

#[test]
fn agents_are_described_and_their_bounds_only_lower_the_placement_s() {
    on_one_thread(async {
        let world = World::new();
        let config = "[agents.short]\ncommand = [\"/bin/sleep\", \"1000\"]\ndescription = \"Sleeps\"\n\
                      deadline-ms = 300\n[agents.small]\ncommand = [\"/bin/echo\", \"12345\"]\nmax-output-bytes = 5";
        let life = world.try_begin(config).await.unwrap();
        let agents = life.machine.environment().agents;
        let described: Vec<_> =
            agents.iter().map(|agent| (&*agent.name, &*agent.description, agent.deadline_ms)).collect();
        assert_eq!(described, [("short", "Sleeps", 300), ("small", "", 60_000)]);
        let mut caller = Caller::new(OWNER, "call-1");
        caller.wish.deadline_ms = Some(3_600_000);
        let view = life.delegate_as("short", "x", caller).await.unwrap();
        let view = life.ended(&view.address).await;
        assert_eq!((view.state, view.reason.as_deref()), (TaskState::Interrupted, Some("task-deadline")));
        let view = life.run("small", "x").await;
        assert_eq!(
            view.reason.as_deref(),
            Some("task-output-over-budget"),
            "the line's end is the sixth byte"
        );
        let mut caller = Caller::new(OWNER, "call-2");
        caller.wish.deadline_ms = Some(3_600_001);
        let refused = life.delegate_as("small", "x", caller).await;
        assert_eq!(code(refused), Some(Code::UnboundedExecutor));
    });
}

#[test]
fn every_end_of_a_command_has_a_name() {
    on_one_thread(async {
        let world = World::new();
        let agents = [
            ("fails", "echo first >&2; echo 'the reason' >&2; exit 3"),
            ("mute", "exit 3"),
            ("dies", "kill -9 $$"),
            ("binary", r"printf '\377\376'"),
            ("empty", "true"),
            ("floods", "exec yes"),
            ("closes", "exec >&- 2>&-; sleep 0.3; exit 0"),
            ("deaf", "exec <&-; echo heard nothing"),
            ("chatty", "yes 'still here' | head -200000 >&2; printf done"),
        ];
        let life = world.begin(&agents).await;
        for (agent, state, reason, progress) in [
            ("fails", TaskState::Failed, Some("executor-failed"), Some("the reason")),
            ("mute", TaskState::Failed, Some("executor-failed"), Some("exit status: 3")),
            ("dies", TaskState::Failed, Some("executor-failed"), Some("exit status: 137")),
            ("binary", TaskState::Failed, Some("task-invalid-result"), None),
            ("empty", TaskState::Completed, None, None),
            ("floods", TaskState::Failed, Some("task-output-over-budget"), None),
            ("closes", TaskState::Completed, None, None),
            ("deaf", TaskState::Completed, None, None),
            ("chatty", TaskState::Completed, None, Some("still here")),
        ] {
            let view = life.run(agent, "x").await;
            assert_eq!((view.state, view.reason.as_deref()), (state, reason), "{agent}: {view:?}");
            let said = view.progress.unwrap_or_default();
            assert!(progress.is_none_or(|part| said.contains(part)), "{agent}: {said}");
        }
    });
}

#[test]
fn a_command_that_is_not_there_is_named_in_the_progress() {
    on_one_thread(async {
        let world = World::new();
        let config = "[agents.none]\ncommand = [\"/nowhere/prog\"]\n[agents.folder]\ncommand = [\"/tmp\"]";
        let life = world.try_begin(config).await.unwrap();
        for (agent, program) in [("none", "/nowhere/prog"), ("folder", "/tmp")] {
            let view = life.run(agent, "x").await;
            assert_eq!(view.reason.as_deref(), Some("executor-failed"), "{view:?}");
            assert!(view.progress.unwrap().contains(program));
        }
    });
}

#[test]
fn lines_of_standard_error_are_progress_while_it_runs_and_secrets_are_taken_out() {
    on_one_thread(async {
        let world = World::new();
        let script = "echo one >&2; while [ ! -e go ]; do sleep 0.02; done; \
                      echo 'password=hunter2hunter2 two' >&2; while [ ! -e end ]; do sleep 0.02; done; echo answer";
        let life = world.begin(&[("slow", script)]).await;
        let view = life.delegate("slow", "x").await.unwrap();
        life.until(&view.address, |view| view.progress.as_deref() == Some("one")).await;
        let told = |part: &str| {
            life.updates
                .borrow()
                .iter()
                .any(|view| view.progress.as_ref().is_some_and(|note| note.contains(part)))
        };
        eventually("the note is told", || told("one")).await;
        world.write("go", "");
        let two = |view: &TaskView| view.progress.as_ref().is_some_and(|note| note.ends_with("two"));
        let view = life.until(&view.address, two).await;
        assert!(!view.progress.unwrap().contains("hunter2"));
        world.write("end", "");
        let view = life.ended(&view.address).await;
        assert_eq!((view.state, view.answer.as_deref()), (TaskState::Completed, Some("answer\n")));
        assert!(told("two") && !told("hunter2"));
    });
}

#[test]
fn eight_run_and_the_ninth_is_refused_until_one_has_ended() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[("sleeps", "exec sleep 1000")]).await;
        let mut addresses = Vec::new();
        for _ in 0..8 {
            addresses.push(life.delegate("sleeps", "x").await.unwrap().address);
        }
        assert_eq!(code(life.delegate("sleeps", "x").await), Some(Code::TaskCapacityExhausted));
        assert_eq!(life.machine.environment().active, 8);
        assert_eq!(life.cancel(&addresses[3]).await, Ok((TaskState::Cancelled, true)));
        addresses.push(life.delegate("sleeps", "x").await.unwrap().address);
        life.machine.shut_down().await;
        assert_eq!(life.machine.environment().active, 0);
    });
}
